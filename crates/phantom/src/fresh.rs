//! What the host or a collective has just written to the card can be read back as it is.
//!
//! Reads below the doorway's sight (inside C++ code of torch) get zeros, since kernels compute
//! nothing and old bytes would be worse. One case is safe: the bytes were written by a copy or a
//! collective, and no kernel was launched since. Ranks compare their models in that way.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use crate::state::lock;
use crate::status;

/// Writes that are remembered.
const KEPT: usize = 64;

/// One write: a range and the number of launches before it.
struct Write {
    start: u64,
    end: u64,
    launches: u64,
}

static WRITES: Mutex<VecDeque<Write>> = Mutex::new(VecDeque::new());

/// Remembers that `size` bytes at `start` hold true values now.
pub(crate) fn note(start: u64, size: usize) {
    let mut writes = lock(&WRITES);
    if writes.len() == KEPT {
        writes.pop_front();
    }
    let launches = status::page().launches.load(Relaxed);
    writes.push_back(Write { start, end: start + size as u64, launches });
}

/// Whether all `size` bytes at `start` were written since the last launch.
pub(crate) fn covers(start: u64, size: usize) -> bool {
    let launches = status::page().launches.load(Relaxed);
    let writes = lock(&WRITES);
    let mut at = start;
    let end = start + size as u64;
    while at < end {
        let next = writes
            .iter()
            .filter(|write| write.launches == launches && write.start <= at && at < write.end)
            .map(|write| write.end)
            .max();
        match next {
            Some(next) => at = next,
            None => return false,
        }
    }
    true
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
        launch::kernel().unwrap();
        assert!(!covers(0x1000, 8));
    }
}
