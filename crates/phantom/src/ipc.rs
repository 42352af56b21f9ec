//! Memory and events of one process in another (`cudaIpc…`): tensors on the card go through
//! `torch.multiprocessing` queues in this way.
//!
//! The owner alone is charged. What it hands out becomes shared memory of the host, so small tensors
//! have the same values on both sides. As on a real card, it is gone when its owner is.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::c_uint;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use cuda_abi::handles::Kind;
use cuda_abi::types::{Address, Handle, IpcHandle};

use crate::arena::PAGE;
use crate::error::{Answer, Failure};
use crate::state::{lock, phantom};
use crate::{device, handles, shared};

/// The one flag that `cudaIpcOpenMemHandle` knows, and wants.
const LAZY_PEER_ACCESS: c_uint = 1;

/// What a handle says, in words of eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Words {
    magic: u64,
    pid: u64,
    /// The owner's file, and which file that is.
    fd: u64,
    inode: u64,
    /// The card's number in the machine.
    card: u64,
    length: u64,
    /// Where the allocation begins in the file.
    offset: u64,
    event: u64,
}

const MEMORY: u64 = u64::from_le_bytes(*b"fathom-m");
const EVENT: u64 = u64::from_le_bytes(*b"fathom-e");

impl Words {
    fn write(self) -> IpcHandle {
        let Words { magic, pid, fd, inode, card, length, offset, event } = self;
        let mut handle = IpcHandle([0; 64]);
        let words = [magic, pid, fd, inode, card, length, offset, event];
        for (to, from) in handle.0.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&from.to_ne_bytes());
        }
        handle
    }

    fn read(handle: IpcHandle, kind: u64) -> Result<Words, Failure> {
        let word = |index: usize| {
            let bytes: [u8; 8] = handle.0[8 * index..8 * index + 8].try_into().unwrap_or_default();
            u64::from_ne_bytes(bytes)
        };
        let [magic, pid, fd, inode] = [0, 1, 2, 3].map(word);
        let [card, length, offset, event] = [4, 5, 6, 7].map(word);
        let is_one = magic == kind && (kind == EVENT || (0 < length && offset < length));
        let words = Words { magic, pid, fd, inode, card, length, offset, event };
        is_one.then_some(words).ok_or(Failure::InvalidHandle)
    }
}

/// Ranges that were handed out: start to length and file.
static EXPORTS: Mutex<BTreeMap<u64, (u64, File)>> = Mutex::new(BTreeMap::new());

/// Whether there ever were any: freeing memory is quick in processes that share none.
static HAS_EXPORTS: AtomicBool = AtomicBool::new(false);

/// Another process's memory in this one.
struct Import {
    start: u64,
    opened: usize,
}

static IMPORTS: Mutex<BTreeMap<Words, Import>> = Mutex::new(BTreeMap::new());

/// Whether there ever were any, as above.
static HAS_IMPORTS: AtomicBool = AtomicBool::new(false);

/// The memory of another process around an address: start and length.
pub(crate) fn opened_at(address: u64) -> Option<(u64, u64)> {
    if !HAS_IMPORTS.load(Relaxed) {
        return None;
    }
    let imports = lock(&IMPORTS);
    let mut ranges = imports.iter().map(|(words, import)| (import.start, words.length));
    ranges.find(|(start, length)| address.checked_sub(*start).is_some_and(|at| at < *length))
}

pub(crate) fn get_memory(out: &mut IpcHandle, address: Address) -> Answer {
    let phantom = phantom()?;
    let index = phantom.device_of(address.0).ok_or(Failure::InvalidValue)?;
    let device = &phantom.devices[index];
    let found = device.look(|arena| arena.containing(address.0));
    let (start, length) = found.ok_or(Failure::InvalidValue)?;
    // Small allocations share a page of the card; it is handed out as a whole.
    let first = start / PAGE * PAGE;
    let end = (start + length).next_multiple_of(PAGE);
    let mut exports = lock(&EXPORTS);
    // From here on another process may write to it.
    crate::reads::lost(start, length as usize);
    let (whole, file) = match exports.entry(first) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(place) => {
            let file = shared::make(end - first)?;
            shared::put(&file, first, end - first)?;
            HAS_EXPORTS.store(true, Relaxed);
            place.insert((end - first, file))
        }
    };
    *out = Words {
        magic: MEMORY,
        pid: u64::from(std::process::id()),
        fd: file.as_raw_fd() as u64,
        inode: file.metadata().map_err(|_| Failure::Unknown)?.ino(),
        card: device.card as u64,
        length: *whole,
        offset: start - first,
        event: 0,
    }
    .write();
    Ok(())
}

/// Memory that goes back to the card is nobody else's any more.
pub(crate) fn withdraw(start: u64, length: u64) {
    if !HAS_EXPORTS.load(Relaxed) {
        return;
    }
    let mut exports = lock(&EXPORTS);
    let inside = exports.range(start..start.saturating_add(length));
    let inside = inside.filter(|(first, (whole, _))| **first + whole <= start + length);
    for first in inside.map(|(first, _)| *first).collect::<Vec<u64>>() {
        if let Some((whole, _file)) = exports.remove(&first) {
            // If the system refuses, the file stays mapped: values that nobody reads.
            let _ = shared::unmap(first, whole);
        }
    }
}

pub(crate) fn open_memory(out: &mut Address, handle: IpcHandle, flags: c_uint) -> Answer {
    let words = Words::read(handle, MEMORY)?;
    if flags != LAZY_PEER_ACCESS {
        return Err(Failure::InvalidValue);
    }
    let phantom = phantom()?;
    if words.pid == u64::from(std::process::id()) {
        return Err(Failure::InvalidContext);
    }
    let mut devices = phantom.devices.iter();
    let index = devices.position(|device| device.card as u64 == words.card);
    let index = index.ok_or(Failure::InvalidDevice)?;
    device::touch(index)?;
    let mut imports = lock(&IMPORTS);
    if let Some(import) = imports.get_mut(&words) {
        import.opened += 1;
        *out = Address(import.start + words.offset);
        return Ok(());
    }
    let file = file_of(words)?;
    let device = &phantom.devices[index];
    let start = device.with_arena(index, |arena| arena.reserve(words.length))?;
    shared::map(&file, start, words.length, 0)?;
    imports.insert(words, Import { start, opened: 1 });
    HAS_IMPORTS.store(true, Relaxed);
    *out = Address(start + words.offset);
    Ok(())
}

/// The owner's file; if the owner has ended, or given the memory back, there is none.
fn file_of(words: Words) -> Result<File, Failure> {
    let path = format!("/proc/{}/fd/{}", words.pid, words.fd);
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|_| Failure::InvalidHandle)?;
    let about = file.metadata().map_err(|_| Failure::InvalidHandle)?;
    let is_it = (about.ino(), about.len()) == (words.inode, words.length);
    is_it.then_some(file).ok_or(Failure::InvalidHandle)
}

pub(crate) fn close_memory(address: Address) -> Answer {
    let phantom = phantom()?;
    let mut imports = lock(&IMPORTS);
    let found = imports.iter_mut().find(|(words, import)| import.start + words.offset == address.0);
    let (&words, import) = found.ok_or(Failure::InvalidValue)?;
    import.opened -= 1;
    if 0 < import.opened {
        return Ok(());
    }
    let start = import.start;
    imports.remove(&words);
    shared::unmap(start, words.length)?;
    let index = phantom.device_of(start).ok_or(Failure::InvalidValue)?;
    phantom.devices[index].with_arena(index, |arena| arena.unreserve(start, words.length));
    Ok(())
}

pub(crate) fn get_event(out: &mut IpcHandle, event: Handle) -> Answer {
    phantom()?;
    *out = Words {
        magic: EVENT,
        pid: u64::from(std::process::id()),
        fd: 0,
        inode: 0,
        card: 0,
        length: 0,
        offset: 0,
        event: event.0 as u64,
    }
    .write();
    Ok(())
}

/// Work of another process counts as done: an event that was never recorded here is complete.
pub(crate) fn open_event(out: &mut Handle, handle: IpcHandle) -> Answer {
    phantom()?;
    Words::read(handle, EVENT)?;
    *out = handles::make(Kind::Event)?;
    Ok(())
}
