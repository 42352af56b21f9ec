//! Where a thread is.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recording::Category;

use crate::parts::{NOTHING, PartNumber, Parts};
use crate::text_table::Word;

/// Nodes of the backward pass are found again by their sequence numbers: of this many parts at least.
const MEMORY: usize = 200_000;

/// What is known of one thread.
#[derive(Debug, Default)]
pub struct Local {
    /// The recorder that this is about; one after another may run in a process.
    note_taker: u64,
    /// The serial number of the part that runs; the note taker sees it too.
    running: Arc<AtomicU64>,
    /// Functions and backward passes that this thread is in.
    pub calls: isize,
    /// The innermost module or node.
    pub part: PartNumber,
    /// The frame that called the innermost module, by its address; 0 outside of modules.
    pub caller: usize,
    /// The function that runs, by its number.
    pub function: u32,
    /// The text that the script itself has set for its events.
    pub text: Option<String>,
    /// What the result of the function that runs is, if that was said before: a word.
    pub expected: Option<(Category, Word)>,
    /// What distributed training is doing; 0 if nothing is known.
    pub area: u32,
    /// What the last function gave, if it was one whole tensor on the card: the object's address, and bytes.
    pub result: Option<(usize, u64)>,
    /// Autograd's sequence number when a function began, and that function as a part.
    sequence: Vec<(u64, PartNumber)>,
}

thread_local! {
    static LOCAL: RefCell<Local> = RefCell::default();
}

/// Works on what is known of this thread. No Python code runs meanwhile.
pub fn with<T>(note_taker: u64, work: impl FnOnce(&mut Local) -> T) -> T {
    LOCAL.with_borrow_mut(|local| {
        if local.note_taker != note_taker {
            *local = Local { note_taker, part: NOTHING, ..Local::default() };
        }
        work(local)
    })
}

impl Local {
    /// The serial number of the part that this thread is in.
    pub fn serial(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    /// This thread begins a part.
    pub fn begin(&self, parts: &mut Parts, part: PartNumber) -> u64 {
        if Arc::weak_count(&self.running) == 0 {
            parts.add_thread(Arc::downgrade(&self.running));
        }
        let serial = parts.begin(part);
        self.running.store(serial, Ordering::Relaxed);
        serial
    }

    /// A function begins, of this number and as this part, when autograd had come to `sequence`.
    pub fn begin_function(&mut self, sequence: u64, part: PartNumber, function: u32) {
        if 2 * MEMORY < self.sequence.len() {
            self.sequence.drain(..self.sequence.len() - MEMORY);
        }
        self.sequence.push((sequence, part));
        self.function = function;
        self.expected = None;
    }

    /// The function that made the node with this number.
    pub fn made_by(&self, sequence: u64) -> PartNumber {
        let after = self.sequence.partition_point(|(begun, _)| *begun <= sequence);
        after.checked_sub(1).map_or(NOTHING, |at| self.sequence[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_found_by_the_function_that_was_running() {
        let mut local = Local::default();
        assert_eq!(local.made_by(3), NOTHING);
        // The second function made the nodes 5 and 6, the third none.
        for (sequence, part) in [(4, 1), (5, 2), (7, 3), (7, 4)] {
            local.begin_function(sequence, part, 0);
        }
        assert_eq!([3, 4, 5, 6, 7, 9].map(|node| local.made_by(node)), [NOTHING, 1, 2, 2, 4, 4]);
    }

    #[test]
    fn functions_of_long_ago_are_forgotten() {
        let mut local = Local::default();
        (0..=2 * MEMORY as u64 + 1).for_each(|sequence| local.begin_function(sequence, 1, 0));
        assert!(local.sequence.len() <= MEMORY + 1);
        assert_eq!((local.made_by(5), local.made_by(2 * MEMORY as u64)), (NOTHING, 1));
    }

    #[test]
    fn what_runs_is_seen_by_all_threads_until_this_one_ends() {
        let mut parts = Parts::default();
        std::thread::scope(|scope| {
            let work = scope.spawn(|| with(1, |local| local.begin(&mut parts, NOTHING)));
            assert_eq!(work.join().unwrap(), 1);
        });
        assert_eq!(parts.running(), [0; 0]);
        with(1, |local| local.begin(&mut parts, NOTHING));
        assert_eq!(parts.running(), [2]);
        // Another recorder knows nothing of it.
        assert_eq!(with(2, |local| local.serial()), 0);
    }
}
