//! This process's status page (see `contract::status`): a shared file, or memory where no run is.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, Once};

use contract::status::{COMMAND_BYTES, MAGIC, NOTES_BYTES, Status};
use contract::work::{Source, Work};

use crate::state::lock;
use crate::{cards, config};

/// Where the page is; null before the first use, and in a forked child, which gets one of its own.
static PAGE: AtomicPtr<Status> = AtomicPtr::new(std::ptr::null_mut());

/// The page of this process.
pub(crate) fn page() -> &'static Status {
    // SAFETY: null, or a mapping that is never undone.
    unsafe { PAGE.load(Acquire).as_ref() }.unwrap_or_else(first)
}

/// Makes the page, once.
#[cold]
fn first() -> &'static Status {
    static MAKING: Mutex<()> = Mutex::new(());
    static WATCH_FORKS: Once = Once::new();
    let _making = lock(&MAKING);
    let made = PAGE.load(Acquire);
    if !made.is_null() {
        // SAFETY: as in `page`.
        return unsafe { &*made };
    }
    WATCH_FORKS.call_once(|| {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    });
    let page = map();
    PAGE.store(std::ptr::from_ref(page).cast_mut(), Release);
    page
}

unsafe extern "C" fn forget() {
    PAGE.store(std::ptr::null_mut(), Relaxed);
}

/// Maps `<run>/phantom.<pid>`; without a run, or if its folder is full, the page is private memory.
fn map() -> &'static Status {
    let length = size_of::<Status>();
    let file = config::get().run.as_ref().and_then(|run| {
        let path = run.join(format!("phantom.{}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
        file.and_then(|file| cards::reserve(&file, length).map(|()| file)).ok()
    });
    let (flags, fd) = match &file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping of the right length; the file, if any, has it.
    let address = unsafe {
        libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0)
    };
    assert!(address != libc::MAP_FAILED, "no memory for the status page");
    // SAFETY: the mapping is zeroed, aligned to a page, never unmapped, and all fields are atomics.
    let page = unsafe { &*address.cast::<Status>() };
    page.parent.store(std::os::unix::process::parent_id(), Relaxed);
    let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let command = command.strip_suffix(&[0]).unwrap_or(&command);
    for (to, from) in page.command.iter().zip(command) {
        to.store(if *from == 0 { b' ' } else { *from }, Relaxed);
    }
    page.command_length.store(command.len().min(COMMAND_BYTES) as u32, Relaxed);
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

/// Notes a call of cuDNN that needs a work area.
pub(crate) fn note_work(work: Work, source: Source, bytes: u64) {
    page().work[work as usize].note(source, bytes);
}

/// The context of this process on a card; 0 before it has one.
pub(crate) fn context_of(device: usize) -> u64 {
    page().devices[device].context.load(Relaxed)
}

/// Notes how much of a card this process holds.
pub(crate) fn note_used(device: usize, used: u64) {
    let status = &page().devices[device];
    status.used.store(used, Relaxed);
    status.peak.fetch_max(used, Relaxed);
}

/// Notes which card of the machine a device is.
pub(crate) fn note_card(device: usize, card: usize) {
    page().devices[device].card.store(card as u64 + 1, Relaxed);
}

/// Notes that the card has no room for this process's context.
pub(crate) fn note_refused_context(device: usize, bytes: u64) {
    page().devices[device].context_refused.store(bytes, Relaxed);
}

/// Notes a request the card refused.
pub(crate) fn note_refusal(device: usize, size: u64) {
    let status = &page().devices[device];
    status.refusals.fetch_add(1, Relaxed);
    status.refused_bytes.store(size, Relaxed);
}
