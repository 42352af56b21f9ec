//! Pinned host memory: ordinary memory, remembered as pinned.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cuda_abi::types::Address;

use crate::error::{Answer, Failure};
use crate::reach;
use crate::state::{self, lock};
use crate::{capture, device};

/// Pinned ranges, start to (length, whether we allocated it); no two overlap.
static PINNED: Mutex<BTreeMap<u64, (u64, bool)>> = Mutex::new(BTreeMap::new());

/// The runtime gives null for no bytes.
pub(crate) fn alloc(out: &mut Address, size: usize) -> Answer {
    capture::unsafe_call()?;
    // Like the real call, the first one makes a context.
    device::touch(state::device(device::current_ordinal())?.0)?;
    if size == 0 {
        *out = Address(0);
        return Ok(());
    }
    let length = size.checked_next_multiple_of(4096).ok_or(Failure::OutOfMemory)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping, handed to the caller until `free`.
    let address = unsafe {
        libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if address == libc::MAP_FAILED {
        return Err(Failure::OutOfMemory);
    }
    lock(&PINNED).insert(address as u64, (length as u64, true));
    *out = Address(address as u64);
    Ok(())
}

pub(crate) fn free(address: Address) -> Answer {
    if address.0 == 0 {
        return Ok(());
    }
    capture::unsafe_call()?;
    let mut pinned = lock(&PINNED);
    let length = match pinned.get(&address.0) {
        Some((length, true)) => *length,
        _ => return Err(Failure::InvalidValue),
    };
    pinned.remove(&address.0);
    reach::forget();
    // SAFETY: the mapping was made by `alloc` and is given back by its owner.
    unsafe { libc::munmap(address.0 as *mut libc::c_void, length as usize) };
    Ok(())
}

pub(crate) fn register(address: Address, size: usize) -> Answer {
    capture::unsafe_call()?;
    state::phantom()?;
    let end = address.0.checked_add(size as u64);
    let is_there = size != 0 && reach::has_readable_ends(address.0 as usize, size);
    let end = end.filter(|_| is_there).ok_or(Failure::InvalidValue)?;
    let mut pinned = lock(&PINNED);
    let before = pinned.range(..end).next_back();
    if before.is_some_and(|(start, (length, _))| address.0 < start + length) {
        return Err(Failure::AlreadyRegistered);
    }
    pinned.insert(address.0, (size as u64, false));
    Ok(())
}

pub(crate) fn unregister(address: Address) -> Answer {
    let mut pinned = lock(&PINNED);
    if !matches!(pinned.get(&address.0), Some((_, false))) {
        return Err(Failure::NotRegistered);
    }
    pinned.remove(&address.0);
    Ok(())
}

pub(crate) fn device_pointer(out: &mut Address, address: Address) -> Answer {
    if !is_pinned(address.0, 1) {
        return Err(Failure::InvalidValue);
    }
    *out = address;
    Ok(())
}

/// Whether a range lies in one piece of pinned memory.
pub(crate) fn is_pinned(start: u64, size: u64) -> bool {
    around(start, size).is_some()
}

/// Whether a range lies in memory that was allocated here.
pub(crate) fn is_own(start: u64, size: u64) -> bool {
    around(start, size) == Some(true)
}

/// Whether the pinned memory around a range was allocated here.
fn around(start: u64, size: u64) -> Option<bool> {
    let pinned = lock(&PINNED);
    let (first, (length, is_own)) = pinned.range(..=start).next_back()?;
    let is_inside = start - first <= *length && size <= length - (start - first);
    is_inside.then_some(*is_own)
}
