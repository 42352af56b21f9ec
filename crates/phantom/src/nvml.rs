//! NVML: the cards of the machine as management tools see them, whatever `CUDA_VISIBLE_DEVICES` says,
//! and all processes of the run that use them. None of this touches a card: who asks may still be forked,
//! or choose its cards afterwards.

use std::ffi::{CStr, c_char, c_int, c_uint};

use contract::machine::{self, bus_of, pci_text, uuid_text};
use cuda_abi::types::{Handle, NvmlMemory, NvmlMemory2, NvmlPci, NvmlProcess};

use crate::cards::{Holder, living_holders};
use crate::error::{Answer, Failure};
use crate::ffi::{Raw, write_text};
use crate::{config, visible};

/// Handles of cards: the number is in them.
const FIRST_HANDLE: usize = 0x8_0000_0000;

fn handle_of(index: c_uint) -> Handle {
    Handle(FIRST_HANDLE + 64 * index as usize)
}

/// The card that a handle stands for.
fn index_of(device: Handle) -> Result<usize, Failure> {
    let distance = device.0.checked_sub(FIRST_HANDLE).ok_or(Failure::InvalidValue)?;
    let index = distance / 64;
    let is_one = distance.is_multiple_of(64) && index < visible::machine();
    if is_one { Ok(index) } else { Err(Failure::InvalidValue) }
}

/// A handle of one of the cards.
pub(crate) fn device(handle: usize) -> Result<Handle, Failure> {
    index_of(Handle(handle)).map(|_| Handle(handle))
}

pub(crate) fn init() -> Answer {
    Ok(())
}

pub(crate) fn count(out: &mut c_uint) -> Answer {
    *out = visible::machine() as c_uint;
    Ok(())
}

pub(crate) fn by_index(index: c_uint, out: &mut Handle) -> Answer {
    *out = handle_of(index);
    index_of(*out).map(|_| ())
}

fn by_text(text: &CStr, name: impl Fn(usize) -> String, out: &mut Handle) -> Answer {
    let text = text.to_string_lossy();
    let found = (0..visible::machine()).find(|card| text.ends_with(&name(*card)));
    *out = handle_of(found.ok_or(Failure::NotFound)? as c_uint);
    Ok(())
}

pub(crate) fn by_uuid(uuid: &CStr, out: &mut Handle) -> Answer {
    by_text(uuid, uuid_text, out)
}

pub(crate) fn by_pci(id: &CStr, out: &mut Handle) -> Answer {
    by_text(id, pci_text, out)
}

pub(crate) fn index(device: Handle, out: &mut c_uint) -> Answer {
    *out = index_of(device)? as c_uint;
    Ok(())
}

pub(crate) fn name(device: Handle, out: Raw<c_char>, length: c_uint) -> Answer {
    index_of(device)?;
    write_text(out, length as usize, config::get().card.title)
}

pub(crate) fn uuid(device: Handle, out: Raw<c_char>, length: c_uint) -> Answer {
    write_text(out, length as usize, &uuid_text(index_of(device)?))
}

/// What is held of the card, by all processes of the run with their contexts, and by other programs.
fn usage(device: Handle) -> Result<NvmlMemory, Failure> {
    let held: u64 = living_holders(index_of(device)?).into_iter().map(Holder::bytes).sum();
    let card = &config::get().card;
    let (total, used) = (card.memory_bytes, held + card.used_bytes);
    Ok(NvmlMemory { total, free: total.saturating_sub(used), used })
}

pub(crate) fn memory(device: Handle, out: &mut NvmlMemory) -> Answer {
    *out = usage(device)?;
    Ok(())
}

pub(crate) fn memory_v2(device: Handle, out: &mut NvmlMemory2) -> Answer {
    let NvmlMemory { total, free, used } = usage(device)?;
    *out = NvmlMemory2 { version: out.version, total, reserved: 0, free, used };
    Ok(())
}

pub(crate) fn utilization(device: Handle, out: &mut [c_uint; 2]) -> Answer {
    index_of(device)?;
    *out = [0, 0];
    Ok(())
}

pub(crate) fn temperature(device: Handle, _sensor: c_int, out: &mut c_uint) -> Answer {
    index_of(device)?;
    *out = machine::IDLE_TEMPERATURE;
    Ok(())
}

pub(crate) fn power(device: Handle, out: &mut c_uint) -> Answer {
    index_of(device)?;
    *out = machine::IDLE_MILLIWATTS;
    Ok(())
}

/// In MHz; kind 2 is the memory's clock.
pub(crate) fn clock(device: Handle, kind: c_int, out: &mut c_uint) -> Answer {
    index_of(device)?;
    let card = &config::get().card;
    *out = (if kind == 2 { card.memory_clock_khz } else { card.clock_khz }) / 1000;
    Ok(())
}

pub(crate) fn compute_capability(device: Handle, major: &mut c_int, minor: &mut c_int) -> Answer {
    index_of(device)?;
    let capability = config::get().card.compute_capability;
    (*major, *minor) = (capability.0 as c_int, capability.1 as c_int);
    Ok(())
}

pub(crate) fn bus_width(device: Handle, out: &mut c_uint) -> Answer {
    index_of(device)?;
    *out = config::get().card.memory_bus_bits;
    Ok(())
}

/// The processes that have a context; a null or short array only gets the count.
fn list<T: Copy>(
    device: Handle,
    count: &mut c_uint,
    out: Raw<T>,
    entry: impl Fn(u32, u64) -> T,
) -> Answer {
    // Other programs are not listed: the driver shows a desktop's memory under no process that computes.
    let holders = living_holders(index_of(device)?);
    let room = std::mem::replace(count, holders.len() as c_uint);
    if holders.is_empty() {
        return Ok(());
    }
    if room < *count || out.is_null() {
        return Err(Failure::BufferTooSmall);
    }
    let entries: Vec<T> = holders.iter().map(|one| entry(one.pid, one.bytes())).collect();
    out.write(&entries)
}

pub(crate) fn processes(device: Handle, count: &mut c_uint, out: Raw<NvmlProcess>) -> Answer {
    list(device, count, out, |pid, used_memory| NvmlProcess {
        pid,
        used_memory,
        ..NvmlProcess::default()
    })
}

/// The first version of the entry has only the number and the memory.
pub(crate) fn processes_v1(device: Handle, count: &mut c_uint, out: Raw<[u64; 2]>) -> Answer {
    list(device, count, out, |pid, used| [u64::from(pid), used])
}

pub(crate) fn no_processes(device: Handle, count: &mut c_uint) -> Answer {
    index_of(device)?;
    *count = 0;
    Ok(())
}

pub(crate) fn pci(device: Handle, out: &mut NvmlPci) -> Answer {
    let index = index_of(device)?;
    // SAFETY: a struct of integers for which zero is valid.
    *out = unsafe { std::mem::zeroed() };
    let text = pci_text(index);
    write_text(Raw(out.bus_id_legacy.as_mut_ptr()), out.bus_id_legacy.len(), &text)?;
    write_text(Raw(out.bus_id.as_mut_ptr()), out.bus_id.len(), &format!("0000{text}"))?;
    out.bus = bus_of(index);
    out.pci_device_id = (c_uint::from(config::get().card.pci_device_id) << 16) | machine::VENDOR;
    Ok(())
}

pub(crate) fn driver_version(out: Raw<c_char>, length: c_uint) -> Answer {
    write_text(out, length as usize, machine::driver(config::get().cuda_version))
}

/// No fabric: all that follows the version of the struct is zero.
pub(crate) fn fabric(device: Handle, out: &mut [u32; 8]) -> Answer {
    index_of(device)?;
    out[1..].fill(0);
    Ok(())
}

/// What a card without NVLink says.
pub(crate) fn not_on_this_card() -> Answer {
    Err(Failure::NotSupported)
}
