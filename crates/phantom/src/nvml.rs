//! NVML: the card as management tools see it, consistent with what the process holds of it.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::atomic::Ordering::Relaxed;

use cuda_abi::types::{Handle, NvmlMemory, NvmlMemory2, NvmlPci, NvmlProcess};

use crate::device::{pci_text, uuid_of};
use crate::error::{Answer, Failure};
use crate::ffi::{Raw, write_text};
use crate::state::{self, phantom};
use crate::{config, status};

/// Handles of cards: the ordinal is in them.
const FIRST_HANDLE: usize = 0x8_0000_0000;

/// What an idle card in a warm room says, in degrees and milliwatts.
const IDLE_TEMPERATURE: c_uint = 35;
const IDLE_MILLIWATTS: c_uint = 30_000;

fn handle_of(index: c_uint) -> Handle {
    Handle(FIRST_HANDLE + 64 * index as usize)
}

fn index_of(device: Handle) -> Result<usize, Failure> {
    let index = device.0.checked_sub(FIRST_HANDLE).ok_or(Failure::InvalidValue)? / 64;
    state::device(index as c_int)?;
    Ok(index)
}

/// Management needs no context, and a process that has asked it may still be forked: nothing of the card is settled.
pub(crate) fn init() -> Answer {
    Ok(())
}

/// As [`init`].
pub(crate) fn count(out: &mut c_uint) -> Answer {
    *out = config::device_count() as c_uint;
    Ok(())
}

pub(crate) fn by_index(index: c_uint, out: &mut Handle) -> Answer {
    state::device(index as c_int)?;
    *out = handle_of(index);
    Ok(())
}

fn by_text(text: &CStr, name: impl Fn(c_int) -> String, out: &mut Handle) -> Answer {
    let text = text.to_string_lossy();
    let count = phantom()?.devices.len() as c_int;
    let found = (0..count).find(|ordinal| text.ends_with(&name(*ordinal)));
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
    write_text(out, length as usize, phantom()?.card.title)
}

fn uuid_text(ordinal: c_int) -> String {
    let hex: String = uuid_of(ordinal).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

pub(crate) fn uuid(device: Handle, out: Raw<c_char>, length: c_uint) -> Answer {
    write_text(out, length as usize, &uuid_text(index_of(device)? as c_int))
}

/// The context counts as used once the process has one.
fn usage(device: Handle) -> Result<NvmlMemory, Failure> {
    let index = index_of(device)?;
    let total = phantom()?.card.memory_bytes;
    let status = &status::page().devices[index];
    let used = status.used.load(Relaxed) + status.context.load(Relaxed);
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
    *out = IDLE_TEMPERATURE;
    Ok(())
}

pub(crate) fn power(device: Handle, out: &mut c_uint) -> Answer {
    index_of(device)?;
    *out = IDLE_MILLIWATTS;
    Ok(())
}

/// In MHz; kind 2 is the memory's clock.
pub(crate) fn clock(device: Handle, kind: c_int, out: &mut c_uint) -> Answer {
    index_of(device)?;
    let card = phantom()?.card;
    *out = (if kind == 2 { card.memory_clock_khz } else { card.clock_khz }) / 1000;
    Ok(())
}

pub(crate) fn compute_capability(device: Handle, major: &mut c_int, minor: &mut c_int) -> Answer {
    crate::device::compute_capability(major, minor, index_of(device)? as c_int)
}

pub(crate) fn bus_width(device: Handle, out: &mut c_uint) -> Answer {
    index_of(device)?;
    *out = phantom()?.card.memory_bus_bits;
    Ok(())
}

/// This process, if it has a context; a null or short array only gets the count.
fn list<T: Copy>(
    device: Handle,
    count: &mut c_uint,
    out: Raw<T>,
    entry: impl Fn(u32, u64) -> T,
) -> Answer {
    let used = usage(device)?.used;
    let room = std::mem::replace(count, c_uint::from(used != 0));
    if used == 0 {
        return Ok(());
    }
    if room == 0 || out.is_null() {
        return Err(Failure::BufferTooSmall);
    }
    out.write(&[entry(std::process::id(), used)]);
    Ok(())
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
    let text = pci_text(index as c_int);
    write_text(Raw(out.bus_id_legacy.as_mut_ptr()), out.bus_id_legacy.len(), &text)?;
    write_text(Raw(out.bus_id.as_mut_ptr()), out.bus_id.len(), &format!("0000{text}"))?;
    out.bus = index as c_uint + 1;
    out.pci_device_id = (c_uint::from(phantom()?.card.pci_device_id) << 16) | 0x10de;
    Ok(())
}

/// A driver of the branch that brought the reported CUDA version.
pub(crate) fn driver_version(out: Raw<c_char>, length: c_uint) -> Answer {
    let text = if 13000 <= config::get().cuda_version { "580.65.06" } else { "550.54.15" };
    write_text(out, length as usize, text)
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
