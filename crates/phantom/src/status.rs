//! This process's status page (see `cuda_abi::status`): a shared file, or memory where no run is.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

use cuda_abi::status::{MAGIC, NOTES_BYTES, Status, Workspaces};

use crate::config;

/// The page of this process.
pub(crate) fn page() -> &'static Status {
    static PAGE: OnceLock<&'static Status> = OnceLock::new();
    PAGE.get_or_init(map)
}

/// Maps `<run>/phantom.<pid>`; without a run the page is private memory.
fn map() -> &'static Status {
    let length = size_of::<Status>();
    let file = config::get().run.as_ref().and_then(|run| {
        let path = run.join(format!("phantom.{}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
        file.and_then(|file| file.set_len(length as u64).map(|()| file)).ok()
    });
    let (flags, fd) = match &file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping of the right length; the file, if any, was extended to it.
    let address = unsafe {
        libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0)
    };
    assert!(address != libc::MAP_FAILED, "no memory for the status page");
    // SAFETY: the mapping is zeroed, aligned to a page, never unmapped, and all fields are atomics.
    let page = unsafe { &*address.cast::<Status>() };
    page.magic.store(MAGIC, Relaxed);
    page
}

pub(crate) fn count_refused_call() {
    page().refused_calls.fetch_add(1, Relaxed);
}

/// Appends a line to the page's notes, as long as there is room.
pub(crate) fn add_note(line: &str) {
    let page = page();
    let bytes = line.as_bytes();
    let start = page.notes_length.fetch_add(bytes.len() as u32 + 1, Relaxed) as usize;
    if NOTES_BYTES < start + bytes.len() + 1 {
        return;
    }
    for (i, byte) in bytes.iter().chain(b"\n").enumerate() {
        page.notes[start + i].store(*byte, Relaxed);
    }
}

/// Notes where a workspace came from; the weakest source wins.
pub(crate) fn note_workspaces(source: Workspaces) {
    page().workspaces.fetch_max(source as u32, Relaxed);
}

/// Notes how much of a card this process holds.
pub(crate) fn note_used(device: usize, used: u64) {
    let status = &page().devices[device];
    status.used.store(used, Relaxed);
    status.peak.fetch_max(used, Relaxed);
}

/// Notes a request the card refused.
pub(crate) fn note_refusal(device: usize, size: u64) {
    let status = &page().devices[device];
    status.refusals.fetch_add(1, Relaxed);
    status.refused_bytes.store(size, Relaxed);
}
