//! Frees that wait for work of other streams, and when a card would have had to be done with it.

use crate::hash::{Map, Set};

/// Numbers the deferred frees of one card.
#[derive(Debug, Default)]
pub struct Deferred {
    /// Part in which they were requested, and their numbers.
    of_serial: Map<u64, Vec<u32>>,
    count: u32,
    /// Those that were done at some time.
    settled: Set<u32>,
}

impl Deferred {
    /// A free was requested in this part, and its completion does not follow there.
    pub fn add(&mut self, serial: u64) {
        self.of_serial.entry(serial).or_default().push(self.count);
        self.count += 1;
    }

    /// (part, number of a free) for each free whose stream was done then.
    pub fn idle(&mut self, waits: &[(u64, u64)]) -> Vec<(u64, u32)> {
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
    pub fn rest(&self) -> impl Iterator<Item = u32> {
        (0..self.count).filter(|number| !self.settled.contains(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frees_are_numbered_and_settled_by_the_part_that_asked_for_them() {
        let mut deferred = Deferred::default();
        [3, 3, 5].iter().for_each(|serial| deferred.add(*serial));
        assert_eq!(deferred.idle(&[(4, 6)]), []);
        assert_eq!(deferred.idle(&[(3, 7)]), [(7, 0), (7, 1)]);
        assert_eq!(deferred.rest().collect::<Vec<_>>(), [2]);
        assert_eq!(deferred.idle(&[(5, 9)]), [(9, 2)]);
        assert_eq!(deferred.rest().count(), 0);
    }
}
