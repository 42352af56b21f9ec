//! Device memory: allocation, queries, and copies that move nothing.
//!
//! The device computes nothing, so copies have little to move. Small data that goes to the card is
//! written to its addresses, where the doorway computes on it; large data is dropped. What is read
//! back here is zero, never the stale bytes of memory that no kernel wrote: the doorway, which knows
//! the tensors, fills in the true values of small ones.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::Ordering::Relaxed;

use cuda_abi::types::{Address, PointerAttributes};

use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::state::{self, phantom};
use crate::{config, context, device, fresh, host, status};

/// Copies to the card of up to this much are written: the doorway's bound for small tensors.
pub(crate) const SMALL_COPY: usize = 512 << 10;

pub(crate) fn malloc(out: &mut Address, size: usize) -> Answer {
    let (index, device) = state::device(device::current_ordinal())?;
    device::touch(index)?;
    let result = device.with_arena(index, |arena| arena.allocate(size as u64));
    *out = Address(result.inspect_err(|_| status::note_refusal(index, size as u64))?);
    Ok(())
}

/// Managed memory is counted as the card's own: on the card is where it is used.
pub(crate) fn malloc_managed(out: &mut Address, size: usize) -> Answer {
    malloc(out, size)
}

pub(crate) fn free(address: Address) -> Answer {
    if address.0 == 0 {
        return Ok(());
    }
    let phantom = phantom()?;
    let index = phantom.device_of(address.0).ok_or(Failure::InvalidValue)?;
    let length = phantom.devices[index].with_arena(index, |arena| arena.release(address.0))?;
    state::discard(address.0, length);
    Ok(())
}

pub(crate) fn info(free: &mut usize, total: &mut usize) -> Answer {
    let (index, device) = state::device(device::current_ordinal())?;
    device::touch(index)?;
    *free = device.with_arena(index, |arena| arena.available()) as usize;
    *total = phantom()?.card.memory_bytes as usize;
    Ok(())
}

pub(crate) fn address_range(
    base: Option<&mut Address>,
    size: Option<&mut usize>,
    address: Address,
) -> Answer {
    let phantom = phantom()?;
    let index = phantom.device_of(address.0).ok_or(Failure::InvalidValue)?;
    let found = phantom.devices[index].with_arena(index, |arena| arena.containing(address.0));
    let (start, length) = found.ok_or(Failure::InvalidValue)?;
    if let Some(base) = base {
        *base = Address(start);
    }
    if let Some(size) = size {
        *size = length as usize;
    }
    Ok(())
}

pub(crate) fn pointer_attributes(out: &mut PointerAttributes, address: Address) -> Answer {
    *out = match phantom()?.device_of(address.0) {
        Some(index) => PointerAttributes {
            kind: 2,
            device: index as c_int,
            device_pointer: address,
            host_pointer: Address(0),
        },
        None => {
            let pinned = host::is_pinned(address.0);
            PointerAttributes {
                kind: c_int::from(pinned),
                device: if pinned { 0 } else { -2 },
                device_pointer: if pinned { address } else { Address(0) },
                host_pointer: address,
            }
        }
    };
    Ok(())
}

/// Attributes by the driver's numbers.
pub(crate) fn pointer_attribute(out: Raw<c_void>, attribute: c_int, address: Address) -> Answer {
    let on_device = phantom()?.device_of(address.0);
    if on_device.is_none() && !host::is_pinned(address.0) {
        return Err(Failure::InvalidValue);
    }
    match attribute {
        1 => {
            let mut handle = Default::default();
            context::primary_retain(&mut handle, on_device.unwrap_or(0) as c_int)?;
            out.write_bytes(&handle.0.to_ne_bytes());
        }
        2 => out.write_bytes(&(if on_device.is_some() { 2_u32 } else { 1 }).to_ne_bytes()),
        3 | 4 => out.write_bytes(&address.0.to_ne_bytes()),
        6 | 8 => out.write_bytes(&[0]),
        9 => out.write_bytes(&(on_device.unwrap_or(0) as c_int).to_ne_bytes()),
        11 | 12 => {
            let (mut base, mut size) = (Address(0), 0);
            address_range(Some(&mut base), Some(&mut size), address)?;
            out.write_bytes(&if attribute == 11 { base.0 } else { size as u64 }.to_ne_bytes());
        }
        13 => out.write_bytes(&[1]),
        _ => out.write_bytes(&0_u32.to_ne_bytes()),
    }
    Ok(())
}

pub(crate) fn pointer_attribute_list(
    count: c_uint,
    attributes: Raw<c_int>,
    out: Raw<Address>,
    address: Address,
) -> Answer {
    let targets = out.read(count as usize);
    for (attribute, target) in attributes.read(count as usize).into_iter().zip(targets) {
        pointer_attribute(Raw(target.0 as *mut c_void), attribute, address)?;
    }
    Ok(())
}

pub(crate) fn copy(to: Address, from: Address, size: usize) -> Answer {
    let phantom = phantom()?;
    if size == 0 {
        return Ok(());
    }
    if to.0 == 0 || from.0 == 0 {
        return Err(Failure::InvalidValue);
    }
    let (to_device, from_device) =
        (phantom.device_of(to.0).is_some(), phantom.device_of(from.0).is_some());
    if to_device && from_device {
        move_small(to, from, size);
        return Ok(());
    }
    if to_device && (SMALL_COPY < size || !config::get().values) {
        return Ok(());
    }
    if from_device && !fresh::covers(from.0, size) {
        if SMALL_COPY < size {
            status::page().zero_reads.fetch_add(1, Relaxed);
        }
        // SAFETY: the caller gives `size` writable bytes at `to`, which is host memory.
        unsafe { (to.0 as *mut u8).write_bytes(0, size) };
    } else {
        // SAFETY: host memory of the caller's, or device memory, which is always mapped.
        unsafe { (from.0 as *const u8).copy_to(to.0 as *mut u8, size) };
        if to_device {
            fresh::note(to.0, size);
        }
    }
    Ok(())
}

/// Moves a small payload between two places on cards; large ones have no values to move.
pub(crate) fn move_small(to: Address, from: Address, size: usize) {
    let on_card =
        |address: Address| phantom().is_ok_and(|phantom| phantom.device_of(address.0).is_some());
    if SMALL_COPY < size || !config::get().values || !on_card(to) || !on_card(from) {
        return;
    }
    let is_true = fresh::covers(from.0, size);
    // SAFETY: device memory is always mapped, and the caller's buffers have `size` bytes.
    unsafe { (from.0 as *const u8).copy_to(to.0 as *mut u8, size) };
    if is_true {
        fresh::note(to.0, size);
    }
}

/// A small payload on a card; `None` if it is large or elsewhere.
pub(crate) fn read_small(from: Address, size: usize) -> Option<Vec<u8>> {
    if SMALL_COPY < size || phantom().ok()?.device_of(from.0).is_none() {
        return None;
    }
    // SAFETY: device memory is always mapped, and the caller's buffer has `size` bytes.
    Some(unsafe { std::slice::from_raw_parts(from.0 as *const u8, size) }.to_vec())
}

/// Changes a small payload on a card in place; it is as true as before, if `change` says so.
pub(crate) fn change_small(at: Address, size: usize, change: impl FnOnce(&mut [u8]) -> bool) {
    let Some(mut payload) = read_small(at, size) else { return };
    let was_true = fresh::covers(at.0, size);
    if !change(&mut payload) {
        return;
    }
    // SAFETY: as in `read_small`; the payload is a copy, so nothing overlaps.
    unsafe { payload.as_ptr().copy_to_nonoverlapping(at.0 as *mut u8, size) };
    if was_true {
        fresh::note(at.0, size);
    }
}

pub(crate) fn copy_2d(
    to: Address,
    to_pitch: usize,
    from: Address,
    from_pitch: usize,
    width: usize,
    height: usize,
) -> Answer {
    for row in 0..height {
        let target = Address(to.0 + (row * to_pitch) as u64);
        copy(target, Address(from.0 + (row * from_pitch) as u64), width)?;
    }
    Ok(())
}

pub(crate) fn copy_peer(
    to: Address,
    _to_device: c_int,
    from: Address,
    _from_device: c_int,
    size: usize,
) -> Answer {
    copy(to, from, size)
}

/// Small memory of the card is set for real, and so is host memory that was registered.
pub(crate) fn set(address: Address, value: c_int, size: usize) -> Answer {
    let on_card = phantom()?.device_of(address.0).is_some();
    if address.0 == 0 || (on_card && (SMALL_COPY < size || !config::get().values)) {
        return Ok(());
    }
    // SAFETY: the caller gives `size` writable bytes of host memory, or of the card, which is mapped.
    unsafe { (address.0 as *mut u8).write_bytes(value as u8, size) };
    if on_card {
        fresh::note(address.0, size);
    }
    Ok(())
}
