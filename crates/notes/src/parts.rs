//! Parts of a script: what an allocation belongs to. Each time one begins, it gets a serial number.

use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash::Map;
use crate::stacks::StackNumber;
use crate::text_table::Word;

/// The number of a part, the same each time it begins.
pub type PartNumber = u32;

/// Outside of modules, functions and nodes.
pub const NOTHING: PartNumber = 0;

/// What runs: a module, a function or a node, and where it was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Part {
    /// 0 is no module.
    pub module: u32,
    /// 0 is no function.
    pub function: u32,
    /// Where it was called.
    pub stack: StackNumber,
    /// The name of a node of the backward pass.
    pub node: Option<Word>,
}

/// All parts, and which of them began when.
#[derive(Debug)]
pub struct Parts {
    list: Vec<Part>,
    numbers: Map<Part, PartNumber>,
    /// The part of each serial number from `first` on: those of this step and of the step before.
    begun: Vec<PartNumber>,
    first: u64,
    /// Where this step begins in `begun`.
    older: usize,
    /// The serial numbers of the parts that threads are in.
    threads: Vec<Weak<AtomicU64>>,
    /// Older parts that threads were still in when the history was last taken.
    lasting: Map<u64, PartNumber>,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts {
            list: vec![Part::default()],
            numbers: Map::from_iter([(Part::default(), NOTHING)]),
            begun: Vec::new(),
            first: 1,
            older: 0,
            threads: Vec::new(),
            lasting: Map::default(),
        }
    }
}

impl Parts {
    /// The number of a part, new or known.
    pub fn number(&mut self, part: Part) -> PartNumber {
        *self.numbers.entry(part).or_insert_with(|| {
            self.list.push(part);
            (self.list.len() - 1) as PartNumber
        })
    }

    /// The part of a number.
    pub fn get(&self, number: PartNumber) -> Part {
        self.list[number as usize]
    }

    /// A part begins: its serial number.
    pub fn begin(&mut self, part: PartNumber) -> u64 {
        self.begun.push(part);
        self.first + self.begun.len() as u64 - 1
    }

    /// The serial number of the part that began last.
    pub fn serial(&self) -> u64 {
        self.first + self.begun.len() as u64 - 1
    }

    /// The serial number of the first part of this step.
    pub fn step(&self) -> u64 {
        self.first + self.older as u64
    }

    /// Parts that began in this step.
    pub fn count(&self) -> usize {
        self.begun.len() - self.older
    }

    /// The part that began with this serial number, if it is not forgotten.
    pub fn at(&self, serial: u64) -> Option<PartNumber> {
        let Some(place) = serial.checked_sub(self.first) else {
            return self.lasting.get(&serial).copied();
        };
        self.begun.get(usize::try_from(place).ok()?).copied()
    }

    /// A thread that begins parts; it keeps the serial number of the one that it is in.
    pub fn add_thread(&mut self, serial: Weak<AtomicU64>) {
        self.threads.push(serial);
    }

    /// The parts that run now, of all threads: there may be more events of these.
    pub fn running(&mut self) -> Vec<u64> {
        self.threads.retain(|thread| thread.strong_count() > 0);
        let serials = self.threads.iter().filter_map(Weak::upgrade);
        serials.map(|serial| serial.load(Ordering::Relaxed)).collect()
    }

    /// A step has been written: what was before it is forgotten, but for the parts that ran when it was taken.
    pub fn forget(&mut self, running: &[u64]) {
        let lasting = running.iter().filter_map(|serial| Some((*serial, self.at(*serial)?)));
        self.lasting = lasting.collect();
        self.begun.drain(..self.older);
        self.first += self.older as u64;
        self.older = self.begun.len();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn of_module(parts: &mut Parts, module: u32) -> PartNumber {
        parts.number(Part { module, ..Part::default() })
    }

    #[test]
    fn a_part_has_one_number_and_many_serials() {
        let mut parts = Parts::default();
        let [one, two] = [1, 2].map(|module| of_module(&mut parts, module));
        assert_eq!((of_module(&mut parts, 1), parts.number(Part::default())), (one, NOTHING));
        assert_eq!([one, two, one].map(|part| parts.begin(part)), [1, 2, 3]);
        assert_eq!(
            [1, 2, 3, 4].map(|serial| parts.at(serial)),
            [Some(one), Some(two), Some(one), None]
        );
        assert_eq!((parts.serial(), parts.count(), parts.get(two).module), (3, 3, 2));
    }

    #[test]
    fn two_steps_are_remembered_and_what_still_runs() {
        let mut parts = Parts::default();
        let part = of_module(&mut parts, 1);
        let steps = [[1, 2], [3, 4], [5, 6]];
        for step in steps {
            assert_eq!((parts.step(), parts.count()), (step[0], 0));
            step.iter().for_each(|serial| assert_eq!(parts.begin(part), *serial));
            // The second part of the first step lasts until the end.
            parts.forget(&[2]);
        }
        let is_known = |serial| parts.at(serial).is_some();
        assert_eq!([1, 2, 3, 4, 5, 6].map(is_known), [false, true, false, false, true, true]);
    }

    #[test]
    fn threads_that_have_ended_run_nothing() {
        let mut parts = Parts::default();
        let threads = [Arc::new(AtomicU64::new(7)), Arc::new(AtomicU64::new(9))];
        threads.iter().for_each(|thread| parts.add_thread(Arc::downgrade(thread)));
        assert_eq!(parts.running(), [7, 9]);
        let [first, second] = threads;
        drop(first);
        assert_eq!(parts.running(), [9]);
        drop(second);
        assert_eq!(parts.running(), [0; 0]);
    }
}
