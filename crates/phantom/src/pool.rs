//! Stream-ordered allocation (`cudaMallocAsync`): one pool per card that keeps what it was given.
//!
//! A model, since the driver's own is not public: the pool takes memory from the card in chunks of
//! 32 MiB (larger requests in whole pages), places requests first fit at multiples of 512 bytes, and
//! gives empty chunks back when it is trimmed or holds more than its release threshold.

use std::collections::BTreeMap;
use std::ffi::c_int;

use cuda_abi::types::{Address, Handle};

use crate::arena::{Arena, PAGE};
use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::state::{self, Device, lock, phantom};
use crate::{device, status};

/// What the pool asks the card for at the least.
const CHUNK: u64 = 32 << 20;

/// Alignment of allocations in the pool.
const GRAIN: u64 = 512;

/// Handles of pools: the ordinal is in them.
const FIRST_HANDLE: usize = 0x7_0000_0000;

/// The default pool of one card.
#[derive(Default)]
pub(crate) struct Pool {
    /// Chunks taken from the card, start to length.
    chunks: BTreeMap<u64, u64>,
    /// Free ranges inside the chunks.
    free: BTreeMap<u64, u64>,
    /// Live allocations, start to length.
    live: BTreeMap<u64, u64>,
    used: u64,
    reserved: u64,
    used_peak: u64,
    reserved_peak: u64,
    release_threshold: u64,
}

impl Pool {
    fn allocate(&mut self, arena: &mut Arena, size: u64) -> Result<u64, Failure> {
        let length = size.max(1).next_multiple_of(GRAIN);
        if !self.free.values().any(|found| length <= *found) {
            let chunk = length.max(CHUNK).next_multiple_of(PAGE);
            let start = match arena.allocate(chunk) {
                Ok(start) => start,
                Err(_) => {
                    self.trim(arena, 0);
                    arena.allocate(chunk)?
                }
            };
            self.chunks.insert(start, chunk);
            self.free.insert(start, chunk);
            self.reserved += chunk;
            self.reserved_peak = self.reserved_peak.max(self.reserved);
        }
        let (&start, &found) = self
            .free
            .iter()
            .find(|(_, found)| length <= **found)
            .expect("a chunk that fits was just added");
        self.free.remove(&start);
        if length < found {
            self.free.insert(start + length, found - length);
        }
        self.live.insert(start, length);
        self.used += length;
        self.used_peak = self.used_peak.max(self.used);
        Ok(start)
    }

    fn release(&mut self, arena: &mut Arena, start: u64) -> Result<(), Failure> {
        let length = self.live.remove(&start).ok_or(Failure::InvalidValue)?;
        self.used -= length;
        let (mut start, mut length) = (start, length);
        // Join with free neighbours of the same chunk; chunks never join.
        if let Some((&before, &before_length)) = self.free.range(..start).next_back()
            && before + before_length == start
            && !self.chunks.contains_key(&start)
        {
            self.free.remove(&before);
            (start, length) = (before, length + before_length);
        }
        let end = start + length;
        if !self.chunks.contains_key(&end)
            && let Some(after) = self.free.remove(&end)
        {
            length += after;
        }
        self.free.insert(start, length);
        if self.release_threshold < self.reserved {
            self.trim(arena, self.release_threshold);
        }
        Ok(())
    }

    /// Gives empty chunks back until at most `keep` bytes are held.
    fn trim(&mut self, arena: &mut Arena, keep: u64) {
        let empty: Vec<(u64, u64)> = self
            .chunks
            .iter()
            .filter(|(start, length)| self.free.get(start) == Some(length))
            .map(|(start, length)| (*start, *length))
            .collect();
        for (start, length) in empty {
            if self.reserved <= keep {
                break;
            }
            self.chunks.remove(&start);
            self.free.remove(&start);
            self.reserved -= length;
            arena.release(start).expect("the chunk came from this arena");
            state::discard(start, length);
        }
    }
}

fn with_pool<T>(
    ordinal: c_int,
    work: impl FnOnce(&mut Pool, &mut Arena) -> T,
) -> Result<T, Failure> {
    let (index, device): (usize, &Device) = state::device(ordinal)?;
    let mut pool = lock(&device.pool);
    Ok(device.with_arena(index, |arena| work(&mut pool, arena)))
}

fn ordinal_of(pool: Handle) -> c_int {
    (pool.0.saturating_sub(FIRST_HANDLE) / 64) as c_int
}

fn malloc_on(ordinal: c_int, out: &mut Address, size: usize) -> Answer {
    let (index, _) = state::device(ordinal)?;
    device::touch(index)?;
    let result = with_pool(ordinal, |pool, arena| pool.allocate(arena, size as u64))?;
    *out = Address(result.inspect_err(|_| status::note_refusal(index, size as u64))?);
    Ok(())
}

pub(crate) fn malloc(out: &mut Address, size: usize, _stream: Handle) -> Answer {
    malloc_on(device::current_ordinal(), out, size)
}

pub(crate) fn malloc_from(out: &mut Address, size: usize, pool: Handle) -> Answer {
    malloc_on(ordinal_of(pool), out, size)
}

pub(crate) fn free(address: Address, _stream: Handle) -> Answer {
    let index = phantom()?.device_of(address.0).ok_or(Failure::InvalidValue)?;
    with_pool(index as c_int, |pool, arena| pool.release(arena, address.0))?
}

pub(crate) fn default_of(out: &mut Handle, ordinal: c_int) -> Answer {
    state::device(ordinal)?;
    *out = Handle(FIRST_HANDLE + 64 * ordinal as usize);
    Ok(())
}

/// Attributes by the runtime's numbers; the reuse switches are always on.
pub(crate) fn attribute(pool: Handle, attribute: c_int, out: Raw<u64>) -> Answer {
    let value = with_pool(ordinal_of(pool), |pool, _| match attribute {
        4 => Some(pool.release_threshold),
        5 => Some(pool.reserved),
        6 => Some(pool.reserved_peak),
        7 => Some(pool.used),
        8 => Some(pool.used_peak),
        _ => None,
    })?;
    match value {
        Some(value) => out.write(&[value]),
        // The reuse switches are ints, not longs.
        None => Raw(out.0.cast::<c_int>()).write(&[1]),
    }
    Ok(())
}

pub(crate) fn set_attribute(pool: Handle, attribute: c_int, value: Raw<u64>) -> Answer {
    with_pool(ordinal_of(pool), |pool, _| match attribute {
        4 => pool.release_threshold = value.read(1).first().copied().unwrap_or(0),
        6 => pool.reserved_peak = pool.reserved,
        8 => pool.used_peak = pool.used,
        _ => {}
    })
}

pub(crate) fn trim(pool: Handle, keep: usize) -> Answer {
    with_pool(ordinal_of(pool), |pool, arena| pool.trim(arena, keep as u64))
}

pub(crate) fn graph_attribute(_device: c_int, _attribute: c_int, out: &mut u64) -> Answer {
    *out = 0;
    Ok(())
}
