//! The virtual memory API (`expandable_segments:True`): addresses, memory, and maps between them.

use std::collections::BTreeMap;
use std::ffi::c_int;

use cuda_abi::types::{Address, VirtualProperties};

use crate::arena::PAGE;
use crate::error::{Answer, Failure};
use crate::state::{self, lock, phantom};
use crate::{device, status};

/// One piece of physical memory.
struct Piece {
    size: u64,
    /// Maps plus the creator's own reference; the memory goes back to the card at zero.
    references: u64,
}

/// Physical pieces of one card and where they are mapped.
#[derive(Default)]
pub(crate) struct Mappings {
    pieces: BTreeMap<u64, Piece>,
    /// Mapped ranges: start to (length, handle of the piece).
    mapped: BTreeMap<u64, (u64, u64)>,
    created: u64,
}

impl Mappings {
    /// Drops one reference; the size to give back to the card when it was the last.
    fn drop_reference(&mut self, handle: u64) -> Result<u64, Failure> {
        let piece = self.pieces.get_mut(&handle).ok_or(Failure::InvalidValue)?;
        piece.references -= 1;
        if 0 < piece.references {
            return Ok(0);
        }
        let size = piece.size;
        self.pieces.remove(&handle);
        Ok(size)
    }
}

/// Handles carry the ordinal in their upper half.
fn handle(index: usize, number: u64) -> u64 {
    ((index as u64 + 1) << 40) | number
}

fn index_of(handle: u64) -> Result<usize, Failure> {
    (handle >> 40).checked_sub(1).map(|index| index as usize).ok_or(Failure::InvalidValue)
}

pub(crate) fn reserve(out: &mut Address, size: usize, _alignment: usize) -> Answer {
    let (index, device) = state::device(device::current_ordinal())?;
    *out = Address(device.with_arena(index, |arena| arena.reserve(size as u64))?);
    Ok(())
}

pub(crate) fn unreserve(address: Address, size: usize) -> Answer {
    let phantom = phantom()?;
    let index = phantom.device_of(address.0).ok_or(Failure::InvalidValue)?;
    phantom.devices[index].with_arena(index, |arena| arena.unreserve(address.0, size as u64));
    Ok(())
}

pub(crate) fn create(out: &mut u64, size: usize, properties: &VirtualProperties) -> Answer {
    let (index, device) = state::device(properties.location)?;
    device::touch(index)?;
    let size = (size as u64).next_multiple_of(PAGE);
    let charged = device.with_arena(index, |arena| arena.charge(size));
    charged.inspect_err(|_| status::note_refusal(index, size))?;
    let mut mappings = lock(&device.mappings);
    mappings.created += 1;
    *out = handle(index, mappings.created);
    mappings.pieces.insert(*out, Piece { size, references: 1 });
    Ok(())
}

pub(crate) fn release(handle: u64) -> Answer {
    let index = index_of(handle)?;
    let (_, device) = state::device(index as c_int)?;
    let freed = lock(&device.mappings).drop_reference(handle)?;
    device.with_arena(index, |arena| arena.discharge(freed));
    Ok(())
}

pub(crate) fn map(address: Address, size: usize, _offset: usize, handle: u64) -> Answer {
    let (_, device) = state::device(index_of(handle)? as c_int)?;
    let mut mappings = lock(&device.mappings);
    mappings.pieces.get_mut(&handle).ok_or(Failure::InvalidValue)?.references += 1;
    mappings.mapped.insert(address.0, (size as u64, handle));
    Ok(())
}

pub(crate) fn unmap(address: Address, size: usize) -> Answer {
    let phantom = phantom()?;
    let index = phantom.device_of(address.0).ok_or(Failure::InvalidValue)?;
    let device = &phantom.devices[index];
    let mut mappings = lock(&device.mappings);
    let end = address.0 + size as u64;
    let starts: Vec<u64> = mappings.mapped.range(address.0..end).map(|(start, _)| *start).collect();
    let mut freed = 0;
    for start in starts {
        let (_, handle) = mappings.mapped.remove(&start).expect("listed a moment ago");
        freed += mappings.drop_reference(handle)?;
    }
    drop(mappings);
    device.with_arena(index, |arena| arena.discharge(freed));
    state::discard(address.0, size as u64);
    Ok(())
}

pub(crate) fn granularity(out: &mut usize) -> Answer {
    *out = PAGE as usize;
    Ok(())
}

pub(crate) fn retain(out: &mut u64, address: Address) -> Answer {
    let phantom = phantom()?;
    let index = phantom.device_of(address.0).ok_or(Failure::InvalidValue)?;
    let mut mappings = lock(&phantom.devices[index].mappings);
    let found = mappings.mapped.range(..=address.0).next_back().map(|(_, (_, handle))| *handle);
    let handle = found.ok_or(Failure::InvalidValue)?;
    mappings.pieces.get_mut(&handle).ok_or(Failure::InvalidValue)?.references += 1;
    *out = handle;
    Ok(())
}

pub(crate) fn properties(out: &mut VirtualProperties, handle: u64) -> Answer {
    *out = VirtualProperties {
        kind: 1,
        location_kind: 1,
        location: index_of(handle)? as c_int,
        ..VirtualProperties::default()
    };
    Ok(())
}

/// Read and write.
pub(crate) fn access(out: &mut u64) -> Answer {
    *out = 3;
    Ok(())
}
