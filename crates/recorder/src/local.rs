//! Where a thread is.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::parts::{NOTHING, PartNumber, Parts};

/// Nodes of the backward pass are found again by their sequence numbers: of this many parts at least.
const MEMORY: usize = 200_000;

#[derive(Default)]
pub(crate) struct Local {
    /// The recorder that this is about; one after another may run in a process.
    scribe: u64,
    /// The serial number of the part that runs; the scribe sees it too.
    running: Arc<AtomicU64>,
    /// Functions and backward passes that this thread is in.
    pub(crate) calls: isize,
    /// The innermost module or node.
    pub(crate) part: PartNumber,
    /// The frame that called the innermost module, by its address; 0 outside of modules.
    pub(crate) caller: usize,
    /// The function that runs, by its number.
    pub(crate) function: u32,
    /// The text that the script itself has set for its events.
    pub(crate) text: Option<String>,
    /// What distributed training is doing; 0 if nothing is known.
    pub(crate) area: u32,
    /// What the last function gave, if it was one whole tensor on the card: the object's address, and bytes.
    pub(crate) result: Option<(usize, u64)>,
    /// Autograd's sequence number when a function began, and that function as a part.
    sequence: Vec<(u64, PartNumber)>,
}

thread_local! {
    static LOCAL: RefCell<Local> = RefCell::default();
}

/// Works on what is known of this thread. No Python code runs meanwhile.
pub(crate) fn with<T>(scribe: u64, work: impl FnOnce(&mut Local) -> T) -> T {
    LOCAL.with_borrow_mut(|local| {
        if local.scribe != scribe {
            *local = Local { scribe, part: NOTHING, ..Local::default() };
        }
        work(local)
    })
}

impl Local {
    /// The serial number of the part that this thread is in.
    pub(crate) fn serial(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    /// This thread begins a part.
    pub(crate) fn begin(&self, parts: &mut Parts, part: PartNumber) -> u64 {
        if Arc::weak_count(&self.running) == 0 {
            parts.add_thread(Arc::downgrade(&self.running));
        }
        let serial = parts.begin(part);
        self.running.store(serial, Ordering::Relaxed);
        serial
    }

    pub(crate) fn begin_function(&mut self, sequence: u64, part: PartNumber, function: u32) {
        if 2 * MEMORY < self.sequence.len() {
            self.sequence.drain(..self.sequence.len() - MEMORY);
        }
        self.sequence.push((sequence, part));
        self.function = function;
    }

    /// The function that made the node with this number.
    pub(crate) fn made_by(&self, sequence: u64) -> PartNumber {
        let after = self.sequence.partition_point(|(begun, _)| *begun <= sequence);
        after.checked_sub(1).map_or(NOTHING, |at| self.sequence[at].1)
    }
}
