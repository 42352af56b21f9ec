//! Work areas that libraries are given. Their owner is PyTorch's allocator, which does not know what
//! they are for; the phantom sees them handed over, and tells the doorway.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use contract::work::Work;

use crate::state::lock;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Row {
    part: u64,
    address: u64,
    work: u64,
}

/// More than this is not remembered: nobody is asking.
const MOST: usize = 1 << 20;

static ROWS: Mutex<Vec<Row>> = Mutex::new(Vec::new());

/// The part of the script that runs, by the doorway's count; 0 as long as nobody records.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "a name that C and Python see")]
pub static fathom_part: AtomicU64 = AtomicU64::new(0);

/// A library got `address` as its work area.
pub(crate) fn note(work: Work, address: u64) {
    let part = fathom_part.load(Relaxed);
    if part == 0 || address == 0 {
        return;
    }
    let mut rows = lock(&ROWS);
    if rows.len() < MOST {
        rows.push(Row { part, address, work: work as u64 });
    }
}

/// For the doorway: moves up to `room` rows, oldest first; gives how many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fathom_workspaces(out: *mut Row, room: u64) -> u64 {
    let mut rows = lock(&ROWS);
    let count = rows.len().min(room as usize);
    // SAFETY: the doorway passes an array of `room` rows.
    let out = unsafe { std::slice::from_raw_parts_mut(out, count) };
    out.copy_from_slice(&rows[..count]);
    rows.drain(..count);
    count as u64
}
