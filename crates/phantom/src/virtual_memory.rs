//! The virtual memory API (`expandable_segments:True`): addresses, memory, and maps between them.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::File;
use std::os::fd::{FromRawFd, IntoRawFd};

use contract::status::MAX_DEVICES;
use cuda_abi::types::{Address, VirtualProperties};

use crate::arena::{PAGE, granted};
use crate::error::{Answer, Failure};
use crate::state::{self, Device, lock, phantom};
use crate::{device, shared, status};

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`. Handles of a fabric need one.
const FILE_DESCRIPTOR: c_int = 1;

/// One piece of physical memory; it goes back to the card when nobody has it and it is mapped nowhere.
struct Piece {
    size: u64,
    /// Handles to it: the creator's, and those that were asked for by address.
    owners: u64,
    maps: u64,
    /// What it is made of once another process has it, or if it is another's.
    file: Option<File>,
    /// Another process's: that one is charged for it.
    is_imported: bool,
}

/// Physical pieces of one card, and the addresses that were reserved on it with what is mapped there.
#[derive(Default)]
pub(crate) struct Mappings {
    pieces: BTreeMap<u64, Piece>,
    /// Reserved ranges: start to (length asked for, length kept apart).
    reserved: BTreeMap<u64, (u64, u64)>,
    /// Mapped ranges: start to (length, handle of the piece). They lie in reserved ones.
    mapped: BTreeMap<u64, (u64, u64)>,
    created: u64,
}

impl Mappings {
    fn piece(&mut self, handle: u64) -> Result<&mut Piece, Failure> {
        self.pieces.get_mut(&handle).ok_or(Failure::InvalidValue)
    }

    /// As [`Mappings::piece`], for those who still have a handle to it.
    fn owned(&mut self, handle: u64) -> Result<&mut Piece, Failure> {
        self.piece(handle).and_then(|piece| match piece.owners {
            0 => Err(Failure::InvalidValue),
            _ => Ok(piece),
        })
    }

    /// A new piece, with its creator's handle.
    fn add(&mut self, index: usize, size: u64, file: Option<File>) -> u64 {
        self.created += 1;
        let handle = handle(index, self.created);
        let is_imported = file.is_some();
        self.pieces.insert(handle, Piece { size, owners: 1, maps: 0, file, is_imported });
        handle
    }

    /// Notes one more map of a piece, of so many bytes; what it is made of, if that is a file.
    fn take(&mut self, handle: u64, size: u64) -> Result<Option<File>, Failure> {
        let piece = self.owned(handle)?;
        if piece.size < size {
            return Err(Failure::InvalidValue);
        }
        let file = piece.file.as_ref().map(File::try_clone).transpose();
        let file = file.map_err(|_| Failure::OutOfMemory)?;
        piece.maps += 1;
        Ok(file)
    }

    /// Forgets a piece that nobody has; the size to give back to the card.
    fn drop_unused(&mut self, handle: u64) -> u64 {
        match self.pieces.get(&handle) {
            Some(Piece { size, owners: 0, maps: 0, is_imported, .. }) => {
                let size = if *is_imported { 0 } else { *size };
                self.pieces.remove(&handle);
                size
            }
            _ => 0,
        }
    }

    /// The mapped ranges that begin in `[start, end)`.
    fn within(&self, start: u64, end: u64) -> Vec<u64> {
        self.mapped.range(start..end).map(|(start, _)| *start).collect()
    }

    /// The mapped range around an address: start and length.
    pub(crate) fn containing(&self, address: u64) -> Option<(u64, u64)> {
        let (&start, &(length, _)) = self.mapped.range(..=address).next_back()?;
        (address - start < length).then_some((start, length))
    }

    /// Whether every byte of a range is mapped, by however many pieces.
    pub(crate) fn covers(&self, start: u64, size: u64) -> bool {
        let Some(end) = start.checked_add(size) else { return false };
        let mut at = start;
        loop {
            match self.containing(at) {
                Some((first, length)) if end <= first + length => return true,
                Some((first, length)) => at = first + length,
                None => return false,
            }
        }
    }
}

/// Handles carry the ordinal in their upper half.
fn handle(index: usize, number: u64) -> u64 {
    ((index as u64 + 1) << 40) | number
}

fn index_of(handle: u64) -> Result<usize, Failure> {
    let index = (handle >> 40).checked_sub(1).map(|index| index as usize);
    index.filter(|index| *index < MAX_DEVICES).ok_or(Failure::InvalidValue)
}

fn device_of(handle: u64) -> Result<(usize, &'static Device), Failure> {
    state::device(index_of(handle)? as c_int).map_err(|_| Failure::InvalidValue)
}

/// The card that a range of addresses lies on, and the range's end. Only whole pages are mapped.
fn pages(address: Address, size: usize) -> Result<(usize, u64), Failure> {
    let index = phantom()?.device_of(address.0).ok_or(Failure::InvalidValue)?;
    let end = address.0.checked_add(size as u64).ok_or(Failure::InvalidValue)?;
    let is_whole = size != 0 && address.0.is_multiple_of(PAGE) && end.is_multiple_of(PAGE);
    if is_whole { Ok((index, end)) } else { Err(Failure::InvalidValue) }
}

pub(crate) fn reserve(out: &mut Address, size: usize, alignment: usize) -> Answer {
    let size = size as u64;
    let is_good =
        size != 0 && size.is_multiple_of(PAGE) && (alignment == 0 || alignment.is_power_of_two());
    if !is_good {
        return Err(Failure::InvalidValue);
    }
    let (index, device) = state::device(device::current_ordinal())?;
    *out = Address(device.with_arena(index, |arena| arena.reserve(size))?);
    lock(&device.mappings).reserved.insert(out.0, (size, granted(size).min(size)));
    Ok(())
}

/// The whole range must be given back, with nothing mapped in it.
pub(crate) fn unreserve(address: Address, size: usize) -> Answer {
    let (index, _) = pages(address, size)?;
    let device = &phantom()?.devices[index];
    let mut mappings = lock(&device.mappings);
    let kept = match mappings.reserved.get(&address.0) {
        Some((asked, kept)) if *asked == size as u64 => *kept,
        _ => return Err(Failure::InvalidValue),
    };
    if !mappings.within(address.0, address.0 + kept).is_empty() {
        return Err(Failure::InvalidValue);
    }
    mappings.reserved.remove(&address.0);
    drop(mappings);
    device.with_arena(index, |arena| arena.unreserve(address.0, size as u64));
    Ok(())
}

pub(crate) fn create(out: &mut u64, size: usize, properties: &VirtualProperties) -> Answer {
    if properties.handle_types & !FILE_DESCRIPTOR != 0 {
        return Err(Failure::NotSupported);
    }
    let (index, device) = state::device(properties.location)?;
    device::touch(index)?;
    let size = size as u64;
    if size == 0 || !size.is_multiple_of(PAGE) {
        return Err(Failure::InvalidValue);
    }
    let charged = device.with_arena(index, |arena| arena.charge(size));
    charged.inspect_err(|_| status::note_refusal(index, size))?;
    *out = lock(&device.mappings).add(index, size, None);
    Ok(())
}

/// The piece as a file descriptor, which is the caller's; it can be sent to another process.
pub(crate) fn export(out: &mut c_int, handle: u64, kind: c_int) -> Answer {
    if kind != FILE_DESCRIPTOR {
        return Err(Failure::NotSupported);
    }
    let device = device_of(handle)?.1;
    let of_piece = |found: &Piece| (found.size, found.file.as_ref().map(File::try_clone));
    let (size, file) = of_piece(lock(&device.mappings).owned(handle)?);
    let file = match file {
        Some(copy) => copy.map_err(|_| Failure::OutOfMemory)?,
        None => {
            let file = shared::make(size)?;
            put_where_mapped(&file, handle)?;
            let copy = file.try_clone().map_err(|_| Failure::OutOfMemory)?;
            lock(&device.mappings).piece(handle)?.file = Some(file);
            copy
        }
    };
    *out = file.into_raw_fd();
    Ok(())
}

/// A file takes the place of a piece, on whichever card its addresses are.
fn put_where_mapped(file: &File, handle: u64) -> Answer {
    for device in &phantom()?.devices {
        let mappings = lock(&device.mappings);
        let mut places = mappings.mapped.iter().filter(|(_, (_, of))| *of == handle);
        places.try_for_each(|(start, (length, _))| shared::put(file, *start, *length))?;
    }
    Ok(())
}

/// A piece of another process's; the descriptor stays the caller's.
pub(crate) fn import(out: &mut u64, file: usize, kind: c_int) -> Answer {
    if kind != FILE_DESCRIPTOR {
        return Err(Failure::NotSupported);
    }
    let (index, device) = state::device(device::current_ordinal())?;
    // SAFETY: the caller says that this is an open descriptor; if not, the copy fails.
    let copy = unsafe { libc::fcntl(file as c_int, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(Failure::InvalidValue);
    }
    // SAFETY: the copy was just made and belongs to nobody else.
    let file = unsafe { File::from_raw_fd(copy) };
    let size = file.metadata().map_err(|_| Failure::InvalidValue)?.len();
    if size == 0 || !size.is_multiple_of(PAGE) {
        return Err(Failure::InvalidValue);
    }
    *out = lock(&device.mappings).add(index, size, Some(file));
    Ok(())
}

pub(crate) fn release(handle: u64) -> Answer {
    let (index, device) = device_of(handle)?;
    let mut mappings = lock(&device.mappings);
    mappings.owned(handle)?.owners -= 1;
    let freed = mappings.drop_unused(handle);
    drop(mappings);
    device.with_arena(index, |arena| arena.discharge(freed));
    Ok(())
}

/// A piece, from its start on, at addresses that were reserved and have nothing mapped yet.
pub(crate) fn map(address: Address, size: usize, offset: usize, handle: u64) -> Answer {
    let (_, device) = device_of(handle)?;
    let (index, end) = pages(address, size)?;
    let file = lock(&device.mappings).take(handle, size as u64)?;
    // The addresses may be those of another card.
    let mut mappings = lock(&phantom()?.devices[index].mappings);
    let before = mappings.reserved.range(..=address.0).next_back();
    let is_reserved = before.is_some_and(|(start, (_, kept))| end <= start + kept);
    let is_free =
        mappings.containing(address.0).is_none() && mappings.within(address.0, end).is_empty();
    let put = || match &file {
        Some(file) => shared::map(file, address.0, size as u64, 0),
        None => Ok(()),
    };
    let is_good = is_reserved && is_free && offset == 0;
    let done = if is_good { put() } else { Err(Failure::InvalidValue) };
    if done.is_ok() {
        mappings.mapped.insert(address.0, (size as u64, handle));
        return Ok(());
    }
    drop(mappings);
    drop_map(handle)?;
    done
}

/// Whole mapped ranges, from the first one's start to the last one's end.
pub(crate) fn unmap(address: Address, size: usize) -> Answer {
    let (index, end) = pages(address, size)?;
    let device = &phantom()?.devices[index];
    let mut mappings = lock(&device.mappings);
    let starts = mappings.within(address.0, end);
    let is_whole = mappings.covers(address.0, size as u64)
        && starts.first() == Some(&address.0)
        && starts
            .last()
            .and_then(|last| mappings.mapped.get_key_value(last))
            .is_some_and(|(start, (length, _))| start + length == end);
    if !is_whole {
        return Err(Failure::InvalidValue);
    }
    let removed: Vec<(u64, u64, u64)> = starts
        .into_iter()
        .filter_map(|start| mappings.mapped.remove(&start).map(|(length, of)| (start, length, of)))
        .collect();
    drop(mappings);
    state::discard(address.0, size as u64);
    for (start, length, handle) in removed {
        if lock(&device_of(handle)?.1.mappings).piece(handle)?.file.is_some() {
            shared::unmap(start, length)?;
        }
        drop_map(handle)?;
    }
    Ok(())
}

/// One map of a piece is gone.
fn drop_map(handle: u64) -> Answer {
    let (index, device) = device_of(handle)?;
    let mut mappings = lock(&device.mappings);
    mappings.piece(handle)?.maps -= 1;
    let freed = mappings.drop_unused(handle);
    drop(mappings);
    device.with_arena(index, |arena| arena.discharge(freed));
    Ok(())
}

pub(crate) fn set_access(address: Address, size: usize) -> Answer {
    let (index, _) = pages(address, size)?;
    let is_mapped = lock(&phantom()?.devices[index].mappings).covers(address.0, size as u64);
    if is_mapped { Ok(()) } else { Err(Failure::InvalidValue) }
}

pub(crate) fn granularity(out: &mut usize) -> Answer {
    *out = PAGE as usize;
    Ok(())
}

pub(crate) fn retain(out: &mut u64, address: Address) -> Answer {
    let phantom = phantom()?;
    let index = phantom.device_of(address.0).ok_or(Failure::InvalidValue)?;
    let mappings = lock(&phantom.devices[index].mappings);
    let found = mappings.containing(address.0).and_then(|(start, _)| mappings.mapped.get(&start));
    let (_, handle) = *found.ok_or(Failure::InvalidValue)?;
    drop(mappings);
    lock(&device_of(handle)?.1.mappings).piece(handle)?.owners += 1;
    *out = handle;
    Ok(())
}

pub(crate) fn properties(out: &mut VirtualProperties, handle: u64) -> Answer {
    let (index, device) = device_of(handle)?;
    lock(&device.mappings).owned(handle)?;
    *out = VirtualProperties {
        kind: 1,
        location_kind: 1,
        location: index as c_int,
        ..VirtualProperties::default()
    };
    Ok(())
}

/// Read and write.
pub(crate) fn access(out: &mut u64) -> Answer {
    *out = 3;
    Ok(())
}
