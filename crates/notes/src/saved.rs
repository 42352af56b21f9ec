//! What autograd keeps, storage by storage, beside what forward hooks would count: the sum of all outputs.

use crate::hash::{Map, Set};

/// What is kept for the backward pass that begins, and where most was kept.
#[derive(Debug, Default)]
pub struct Saved {
    /// Bytes of outputs since the last backward pass.
    pub outputs: u64,
    /// Start and bytes of what is kept for the pass that begins; the parameters' own are left out.
    storages: Map<u64, u64>,
    /// The same of what checkpoints keep, which no node of the graph shows; for the next pass.
    waiting: Map<u64, u64>,
    own: Set<u64>,
    is_open: bool,
    /// (kept, outputs) where most was kept.
    pub most: (u64, u64),
}

impl Saved {
    /// A backward pass begins; `own` are the storages of parameters.
    pub fn begin(&mut self, own: Set<u64>) {
        self.storages.clear();
        self.own = own;
        self.is_open = true;
        for (start, bytes) in std::mem::take(&mut self.waiting) {
            self.add(start, bytes);
        }
    }

    /// A checkpoint keeps a storage for the next pass.
    pub fn wait(&mut self, start: u64, bytes: u64) {
        // In a pass that runs, a block is computed again: what it keeps then was not there when the pass began.
        self.waiting.insert(start, bytes);
    }

    /// No pass follows what was put out so far.
    pub fn forget(&mut self) {
        self.outputs = 0;
        self.waiting.clear();
    }

    /// A storage is kept for it.
    pub fn add(&mut self, start: u64, bytes: u64) {
        if self.is_open && !self.own.contains(&start) {
            self.storages.insert(start, bytes);
        }
    }

    /// All that it keeps has been added.
    pub fn end(&mut self) {
        self.most = self.most.max((self.storages.values().sum(), self.outputs));
        self.storages.clear();
        self.outputs = 0;
        self.is_open = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_storage_counts_once_and_parameters_do_not() {
        let mut saved = Saved { outputs: 70, ..Saved::default() };
        saved.add(0xa, 100);
        saved.begin(Set::from_iter([0xb]));
        for (start, bytes) in [(0xa, 100), (0xa, 100), (0xb, 5000), (0xc, 20)] {
            saved.add(start, bytes);
        }
        saved.end();
        assert_eq!((saved.most, saved.outputs), ((120, 70), 0));
        // What checkpoints keep is counted by the next pass, unless none follows.
        saved.wait(0xd, 300);
        saved.forget();
        saved.wait(0xe, 200);
        saved.begin(Set::default());
        saved.end();
        assert_eq!(saved.most, (200, 0));
        saved.most = (120, 70);
        // A smaller pass changes nothing.
        saved.outputs = 900;
        saved.begin(Set::default());
        saved.add(0xa, 100);
        saved.end();
        assert_eq!(saved.most, (120, 70));
    }
}
