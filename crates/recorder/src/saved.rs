//! What autograd keeps, storage by storage, beside what hooks on modules would count: the sum of all outputs.

use crate::hash::{Map, Set};

#[derive(Default)]
pub(crate) struct Saved {
    /// Bytes of outputs since the last backward pass.
    pub(crate) outputs: u64,
    /// Start and bytes of what is kept for the pass that begins; the parameters' own are left out.
    storages: Map<u64, u64>,
    own: Set<u64>,
    is_open: bool,
    /// (kept, outputs) where most was kept.
    pub(crate) most: (u64, u64),
}

impl Saved {
    pub(crate) fn begin(&mut self, own: Set<u64>) {
        self.storages.clear();
        self.own = own;
        self.is_open = true;
    }

    pub(crate) fn add(&mut self, start: u64, bytes: u64) {
        if self.is_open && !self.own.contains(&start) {
            self.storages.insert(start, bytes);
        }
    }

    pub(crate) fn end(&mut self) {
        self.most = self.most.max((self.storages.values().sum(), self.outputs));
        self.storages.clear();
        self.outputs = 0;
        self.is_open = false;
    }
}
