//! What is read from the card by code that the doorway does not see, inside torch's own functions.
//!
//! Kernels compute nothing, so what lies at an address says nothing. The doorway's ledger knows what would be there,
//! and is asked. Where PyTorch reads a count that a kernel has just made, the doorway may know it beforehand.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// `reader(address, size, out, decides)`: fills `out` and gives 1 if the bytes are known. Whether they leave the card, where
/// something may be decided by them, is said too.
type Reader = unsafe extern "C" fn(u64, u64, *mut u8, c_int) -> c_int;

/// `writer(address, size, bytes)`: the card holds these from now on; null if nobody knows what. At no address, without
/// bytes: a graph was launched.
type Writer = unsafe extern "C" fn(u64, u64, *const u8);

static READER: AtomicUsize = AtomicUsize::new(0);
static WRITER: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many functions this thread is in that the doorway sees: it says itself what they do.
    static SEEN: Cell<u32> = const { Cell::new(0) };
    static ANSWERS: RefCell<Answers> = const { RefCell::new(Answers::NONE) };
}

/// Numbers that a thread's reads of one number get. A function that is seen has its own: what a backward pass is to read
/// waits while a checkpoint computes its part of the model again.
struct Answers {
    now: VecDeque<u64>,
    /// Of the next function that is seen.
    next: VecDeque<u64>,
    /// Of those that the one which runs is inside of.
    outside: Vec<VecDeque<u64>>,
}

impl Answers {
    const NONE: Answers =
        Answers { now: VecDeque::new(), next: VecDeque::new(), outside: Vec::new() };

    fn begin(&mut self) {
        let now = std::mem::take(&mut self.next);
        self.outside.push(std::mem::replace(&mut self.now, now));
    }

    fn end(&mut self) {
        self.now = self.outside.pop().unwrap_or_default();
    }
}

/// For the doorway: who knows the values.
#[unsafe(no_mangle)]
pub extern "C" fn fathom_values(reader: Reader, writer: Writer) {
    READER.store(reader as usize, Relaxed);
    WRITER.store(writer as usize, Relaxed);
}

/// For the doorway: so many reads of one number give this one, in the next function of this thread that is seen, or from
/// here on; 0 times: no more.
#[unsafe(no_mangle)]
pub extern "C" fn fathom_answer(number: u64, times: u64, is_now: c_int) {
    ANSWERS.with_borrow_mut(|answers| {
        let answers = if is_now != 0 { &mut answers.now } else { &mut answers.next };
        if times == 0 {
            answers.clear();
        }
        answers.extend(std::iter::repeat_n(number, times as usize));
    });
}

/// For the doorway: a function that it sees begins in this thread, or ends.
#[unsafe(no_mangle)]
pub extern "C" fn fathom_seen(begins: c_int) {
    SEEN.with(|seen| {
        seen.set(if begins != 0 { seen.get() + 1 } else { seen.get().saturating_sub(1) })
    });
    ANSWERS.with_borrow_mut(|answers| if begins != 0 { answers.begin() } else { answers.end() });
}

/// What the card holds there, if that is known; it leaves the card.
pub(crate) fn read(from: u64, size: usize, out: &mut [u8]) -> bool {
    answered(size, out) || ask(from, size, out, true)
}

/// The same for bytes that stay on the card.
pub(crate) fn look(from: u64, size: usize, out: &mut [u8]) -> bool {
    ask(from, size, out, false)
}

/// Whether this thread is in a function that the doorway sees.
pub(crate) fn is_seen() -> bool {
    SEEN.get() != 0
}

fn ask(from: u64, size: usize, out: &mut [u8], decides: bool) -> bool {
    let reader = READER.load(Relaxed);
    if reader == 0 {
        return false;
    }
    // SAFETY: the doorway's function, of this type; it is never unloaded.
    let reader = unsafe { std::mem::transmute::<usize, Reader>(reader) };
    // SAFETY: `out` has `size` bytes.
    unsafe { reader(from, size as u64, out.as_mut_ptr(), c_int::from(decides)) != 0 }
}

fn answered(size: usize, out: &mut [u8]) -> bool {
    if !matches!(size, 1 | 4 | 8) {
        return false;
    }
    let answer = ANSWERS.with_borrow_mut(|answers| answers.now.pop_front());
    if let Some(number) = answer {
        out[..size].copy_from_slice(&number.to_le_bytes()[..size]);
    }
    answer.is_some()
}

/// The card holds these bytes there from now on.
pub(crate) fn wrote(to: u64, bytes: &[u8]) {
    tell(to, bytes.len(), bytes.as_ptr());
}

/// Something was written there that nobody knows.
pub(crate) fn lost(to: u64, size: usize) {
    tell(to, size, std::ptr::null());
}

/// What was captured has run, and written wherever it writes.
pub(crate) fn graph_launched() {
    let writer = WRITER.load(Relaxed);
    if writer != 0 {
        // SAFETY: the doorway's function, of this type; it is never unloaded.
        let writer = unsafe { std::mem::transmute::<usize, Writer>(writer) };
        // SAFETY: null, and no bytes.
        unsafe { writer(0, 0, std::ptr::null()) };
    }
}

/// For the doorway: whether work is captured now instead of being done.
#[unsafe(no_mangle)]
pub extern "C" fn fathom_captures() -> c_int {
    c_int::from(crate::capture::is_under_way())
}

fn tell(to: u64, size: usize, bytes: *const u8) {
    let writer = WRITER.load(Relaxed);
    if writer != 0 && size != 0 && !is_seen() {
        // SAFETY: the doorway's function, of this type; it is never unloaded.
        let writer = unsafe { std::mem::transmute::<usize, Writer>(writer) };
        // SAFETY: `bytes` has `size` bytes, or is null.
        unsafe { writer(to, size as u64, bytes) };
    }
}
