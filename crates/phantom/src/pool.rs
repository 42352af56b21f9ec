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
        let length = size.max(1).checked_next_multiple_of(GRAIN).ok_or(Failure::OutOfMemory)?;
        if !self.free.values().any(|found| length <= *found) {
            let chunk = length.max(CHUNK).checked_next_multiple_of(PAGE);
            let chunk = chunk.ok_or(Failure::OutOfMemory)?;
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

    /// The chunk around an address: its start.
    fn chunk_of(&self, address: u64) -> Option<u64> {
        let (&start, &length) = self.chunks.range(..=address).next_back()?;
        (address - start < length).then_some(start)
    }

    /// Whether a range of one of the card's allocations may be used: in a chunk, only what was given out.
    pub(crate) fn allows(&self, allocation: u64, start: u64, size: u64) -> bool {
        if !self.chunks.contains_key(&allocation) {
            return true;
        }
        let found = self.live.range(..=start).next_back();
        found.is_some_and(|(first, length)| {
            start - first <= *length && size <= length - (start - first)
        })
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

/// The card whose pool a handle is.
pub(crate) fn ordinal_of(pool: usize) -> Result<c_int, Failure> {
    let distance = pool.checked_sub(FIRST_HANDLE).ok_or(Failure::InvalidValue)?;
    let ordinal = c_int::try_from(distance / 64).map_err(|_| Failure::InvalidValue)?;
    let is_ours = distance.is_multiple_of(64) && state::device(ordinal).is_ok();
    if is_ours { Ok(ordinal) } else { Err(Failure::InvalidValue) }
}

/// Whether an address lies in a chunk of a card's pool.
pub(crate) fn owns(index: usize, address: Address) -> bool {
    let device = phantom().map(|phantom| &phantom.devices[index]);
    device.is_ok_and(|device| lock(&device.pool).chunk_of(address.0).is_some())
}

fn malloc_on(ordinal: c_int, out: &mut Address, size: usize) -> Answer {
    if size == 0 {
        *out = Address(0);
        return Ok(());
    }
    let (index, _) = state::device(ordinal)?;
    device::touch(index)?;
    let result = with_pool(ordinal, |pool, arena| pool.allocate(arena, size as u64))?;
    *out = Address(result.inspect_err(|_| status::note_refusal(index, size as u64))?);
    Ok(())
}

pub(crate) fn malloc(out: &mut Address, size: usize) -> Answer {
    malloc_on(device::current_ordinal(), out, size)
}

pub(crate) fn malloc_from(out: &mut Address, size: usize, ordinal: c_int) -> Answer {
    malloc_on(ordinal, out, size)
}

pub(crate) fn free(address: Address) -> Answer {
    let index = phantom()?.device_of(address.0).ok_or(Failure::InvalidValue)?;
    with_pool(index as c_int, |pool, arena| pool.release(arena, address.0))?
}

pub(crate) fn default_of(out: &mut Handle, ordinal: c_int) -> Answer {
    state::device(ordinal)?;
    *out = Handle(FIRST_HANDLE + 64 * ordinal as usize);
    Ok(())
}

/// Attributes by the runtime's numbers; the reuse switches are always on.
pub(crate) fn attribute(ordinal: c_int, attribute: c_int, out: Raw<u64>) -> Answer {
    if out.is_null() {
        return Err(Failure::InvalidValue);
    }
    let value = with_pool(ordinal, |pool, _| match attribute {
        4 => Some(pool.release_threshold),
        5 => Some(pool.reserved),
        6 => Some(pool.reserved_peak),
        7 => Some(pool.used),
        8 => Some(pool.used_peak),
        _ => None,
    })?;
    match (attribute, value) {
        (_, Some(value)) => out.write(&[value]),
        // The reuse switches are ints, not longs.
        (1..=3, None) => Raw(out.0.cast::<c_int>()).write(&[1]),
        _ => Err(Failure::InvalidValue),
    }
}

pub(crate) fn set_attribute(ordinal: c_int, attribute: c_int, value: Raw<u64>) -> Answer {
    let value = match attribute {
        1..=3 => Raw(value.0.cast::<c_int>()).read(1)?.first().map(|value| *value as u64),
        4 | 6 | 8 => value.read(1)?.first().copied(),
        _ => None,
    };
    let value = value.ok_or(Failure::InvalidValue)?;
    with_pool(ordinal, |pool, _| match attribute {
        4 => pool.release_threshold = value,
        6 => pool.reserved_peak = pool.reserved,
        8 => pool.used_peak = pool.used,
        _ => {}
    })
}

pub(crate) fn trim(ordinal: c_int, keep: usize) -> Answer {
    with_pool(ordinal, |pool, arena| pool.trim(arena, keep as u64))
}

pub(crate) fn graph_attribute(ordinal: c_int, attribute: c_int, out: &mut u64) -> Answer {
    state::device(ordinal)?;
    if !(0..=3).contains(&attribute) {
        return Err(Failure::InvalidValue);
    }
    *out = 0;
    Ok(())
}
