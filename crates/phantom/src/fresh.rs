//! What the host or a collective has just written to the card can be read back as it is.
//!
//! Reads below the doorway's sight (inside C++ code of torch) get zeros, since kernels compute
//! nothing and old bytes would be worse. One case is safe: the bytes were written by a copy or a
//! collective, and no kernel was launched since, nor a function of a library called that may launch one. Ranks compare
//! their models in that way.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::state::lock;
use crate::status;

/// Ranges that are remembered. A collective over many ranks is copied out to one tensor for each.
const KEPT: usize = 1 << 20;

/// Bytes that hold true values.
struct Writes {
    /// How much work there was before them.
    work: u64,
    /// Start and end of each range; no two touch.
    ranges: BTreeMap<u64, u64>,
}

static WRITES: Mutex<Writes> = Mutex::new(Writes { work: 0, ranges: BTreeMap::new() });

/// Calls of libraries that compute.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// A library was called that may write to the card.
pub(crate) fn note_work() {
    CALLS.fetch_add(1, Relaxed);
}

/// It changes with whatever may write to the card.
fn work() -> u64 {
    status::page().launches.load(Relaxed) + CALLS.load(Relaxed)
}

/// Remembers that `size` bytes at `start` hold true values now.
pub(crate) fn note(start: u64, size: usize) {
    let work = work();
    let mut writes = lock(&WRITES);
    if writes.work != work || writes.ranges.len() == KEPT {
        writes.ranges.clear();
        writes.work = work;
    }
    let (mut from, mut to) = (start, start + size as u64);
    while let Some((&first, &last)) = writes.ranges.range(..=to).next_back()
        && from <= last
    {
        writes.ranges.remove(&first);
        (from, to) = (from.min(first), to.max(last));
    }
    writes.ranges.insert(from, to);
}

/// Something else was written there: what was remembered of these bytes is gone.
pub(crate) fn forget(start: u64, size: usize) {
    let mut writes = lock(&WRITES);
    let end = start + size as u64;
    while let Some((&first, &last)) = writes.ranges.range(..end).next_back()
        && start < last
    {
        writes.ranges.remove(&first);
    }
}

/// Whether all `size` bytes at `start` were written since the last launch.
pub(crate) fn covers(start: u64, size: usize) -> bool {
    let writes = lock(&WRITES);
    if writes.work != work() {
        return size == 0;
    }
    let last = writes.ranges.range(..=start).next_back();
    size == 0 || last.is_some_and(|(_, end)| start + size as u64 <= *end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch;

    #[test]
    fn writes_are_true_until_the_next_launch() {
        note(0x1000, 8);
        note(0x1008, 8);
        assert!(covers(0x1000, 16) && covers(0x1004, 4));
        assert!(!covers(0x1000, 17) && !covers(0xfff, 2));
        // A collective over many ranks: apart from each other, then the gaps between them.
        for rank in 0..5000 {
            note(0x10_0000 + 512 * rank, 8);
        }
        assert!(covers(0x10_0000, 8) && covers(0x10_0000 + 512 * 4999, 8));
        assert!(!covers(0x10_0000, 16));
        note(0x10_0000, 600);
        assert!(covers(0x10_0000, 600) && !covers(0x10_0000, 601));
        launch::kernel().unwrap();
        assert!(!covers(0x1000, 8));
        note(0x1000, 8);
        note_work();
        assert!(!covers(0x1000, 8));
    }
}
