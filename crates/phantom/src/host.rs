//! Pinned host memory: ordinary memory, remembered as pinned.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cuda_abi::types::Address;

use crate::error::{Answer, Failure};
use crate::state::{self, lock};

/// Pinned ranges, start to (length, whether we allocated it).
static PINNED: Mutex<BTreeMap<u64, (u64, bool)>> = Mutex::new(BTreeMap::new());

pub(crate) fn alloc(out: &mut Address, size: usize) -> Answer {
    // Like the real call, the first one makes a context.
    state::phantom()?;
    let length = size.max(1).next_multiple_of(4096);
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
    match lock(&PINNED).remove(&address.0) {
        Some((length, true)) => {
            // SAFETY: the mapping was made by `alloc` and is given back by its owner.
            unsafe { libc::munmap(address.0 as *mut libc::c_void, length as usize) };
            Ok(())
        }
        _ => Err(Failure::InvalidValue),
    }
}

pub(crate) fn register(address: Address, size: usize) -> Answer {
    lock(&PINNED).insert(address.0, (size as u64, false));
    Ok(())
}

pub(crate) fn unregister(address: Address) -> Answer {
    lock(&PINNED).remove(&address.0).map(|_| ()).ok_or(Failure::InvalidValue)
}

pub(crate) fn device_pointer(out: &mut Address, address: Address) -> Answer {
    *out = address;
    Ok(())
}

/// Whether an address lies in pinned memory.
pub(crate) fn is_pinned(address: u64) -> bool {
    let pinned = lock(&PINNED);
    let found = pinned.range(..=address).next_back();
    found.is_some_and(|(start, (length, _))| address < start + length)
}
