//! Frees that wait for work of other streams, and when a card would have had to be done with it.

use crate::hash::{Map, Set};

/// Numbers the deferred frees of one card.
#[derive(Default)]
pub(crate) struct Deferred {
    /// Part in which they were requested, and their numbers.
    of_serial: Map<u64, Vec<u32>>,
    count: u32,
    /// Those that were done at some time.
    settled: Set<u32>,
}

impl Deferred {
    /// A free was requested in this part, and its completion does not follow there.
    pub(crate) fn add(&mut self, serial: u64) {
        self.of_serial.entry(serial).or_default().push(self.count);
        self.count += 1;
    }

    /// (part, number of a free) for each free whose stream was done then.
    pub(crate) fn idle(&mut self, waits: &[(u64, u64)]) -> Vec<(u64, u32)> {
        let mut found = Vec::new();
        for (recorded, done) in waits {
            for number in self.of_serial.get(recorded).into_iter().flatten() {
                self.settled.insert(*number);
                found.push((*done, *number));
            }
        }
        found
    }

    /// Numbers of the frees that no stream was seen to be done with: they are at the end of the process.
    pub(crate) fn rest(&self) -> impl Iterator<Item = u32> {
        (0..self.count).filter(|number| !self.settled.contains(number))
    }
}
