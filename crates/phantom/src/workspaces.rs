//! Work areas that libraries are given. Their owner is PyTorch's allocator, which does not know what
//! they are for; the phantom sees them handed over, and tells the doorway.
//!
//! With `cudnn.benchmark` PyTorch first runs every plan that cuDNN proposes in one large work area, and then the one it
//! chose in another. The first is told from the second by the clock: a plan that runs between two events whose distance
//! is asked for was tried, and so was the run before that which warms it up.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use contract::work::{Source, Work};

use crate::state::lock;
use crate::status;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Row {
    part: u64,
    address: u64,
    work: u64,
}

/// More than this is not remembered: nobody is asking.
const MOST: usize = 1 << 20;

struct Rows {
    list: Vec<Row>,
    /// The plan that ran there; 0 for calls that have none.
    plans: Vec<u128>,
}

static ROWS: Mutex<Rows> = Mutex::new(Rows { list: Vec::new(), plans: Vec::new() });

thread_local! {
    static RUNS: Cell<Runs> = const { Cell::new(Runs { count: 0, plan: 0, known: None }) };
}

/// Plans that a thread has run.
#[derive(Clone, Copy)]
struct Runs {
    count: u64,
    /// The last of them, and what is known of its work area.
    plan: u128,
    known: Option<(Source, u64)>,
}

/// The part of the script that runs, by the doorway's count; 0 as long as nobody records.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "a name that C and Python see")]
pub static fathom_part: AtomicU64 = AtomicU64::new(0);

/// A library got `address` as its work area.
pub(crate) fn note(work: Work, address: u64) {
    note_of(work, address, 0);
}

/// A plan ran with `address` as its work area, of which the size is `known`.
pub(crate) fn note_plan(work: Work, address: u64, plan: u128, known: Option<(Source, u64)>) {
    RUNS.set(Runs { count: runs() + 1, plan, known });
    note_of(work, address, plan);
}

fn note_of(work: Work, address: u64, plan: u128) {
    let part = fathom_part.load(Relaxed);
    if part == 0 || address == 0 {
        return;
    }
    let mut rows = lock(&ROWS);
    if rows.list.len() < MOST {
        rows.list.push(Row { part, address, work: work as u64 });
        rows.plans.push(plan);
    }
}

/// How many plans this thread has run.
pub(crate) fn runs() -> u64 {
    RUNS.get().count
}

/// The time between two events was asked for: if nothing but the last plan ran between them, it was a trial.
pub(crate) fn timed(runs_before: u64, runs_after: u64) {
    let Runs { count, plan, known } = RUNS.get();
    let part = fathom_part.load(Relaxed);
    if runs_after != runs_before + 1 || runs_after != count || part == 0 {
        return;
    }
    let mut rows = lock(&ROWS);
    let Rows { list, plans } = &mut *rows;
    let is_trial = list.last().is_some_and(|row| row.part == part) && plans.last() == Some(&plan);
    if let (true, Some((source, bytes))) = (is_trial, known) {
        status::note_work(Work::Search, source, bytes);
    }
    for (row, of) in list.iter_mut().zip(&*plans).rev() {
        // A script that takes the time itself asks for it elsewhere.
        if *of != plan || row.part != part || row.work == Work::Search as u64 {
            break;
        }
        row.work = Work::Search as u64;
    }
}

/// For the doorway: moves up to `room` rows, oldest first; gives how many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fathom_workspaces(out: *mut Row, room: u64) -> u64 {
    let mut rows = lock(&ROWS);
    let count = rows.list.len().min(room as usize);
    // SAFETY: the doorway passes an array of `room` rows.
    let out = unsafe { std::slice::from_raw_parts_mut(out, count) };
    out.copy_from_slice(&rows.list[..count]);
    rows.list.drain(..count);
    rows.plans.drain(..count);
    count as u64
}
