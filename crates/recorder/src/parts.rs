//! Parts of a script: what an allocation belongs to. Each time one begins, it gets a serial number.

use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash::Map;
use crate::stacks::StackNumber;
use crate::words::Word;

pub(crate) type PartNumber = u32;

/// Outside of modules, functions and nodes.
pub(crate) const NOTHING: PartNumber = 0;

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    /// 0 is no module.
    pub(crate) module: u32,
    /// 0 is no function.
    pub(crate) function: u32,
    pub(crate) stack: StackNumber,
    /// The name of a node of the backward pass.
    pub(crate) node: Option<Word>,
}

pub(crate) struct Parts {
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
    pub(crate) fn number(&mut self, part: Part) -> PartNumber {
        *self.numbers.entry(part).or_insert_with(|| {
            self.list.push(part);
            (self.list.len() - 1) as PartNumber
        })
    }

    pub(crate) fn get(&self, number: PartNumber) -> Part {
        self.list[number as usize]
    }

    /// A part begins: its serial number.
    pub(crate) fn begin(&mut self, part: PartNumber) -> u64 {
        self.begun.push(part);
        self.first + self.begun.len() as u64 - 1
    }

    /// The serial number of the part that began last.
    pub(crate) fn serial(&self) -> u64 {
        self.first + self.begun.len() as u64 - 1
    }

    /// The serial number of the first part of this step.
    pub(crate) fn step(&self) -> u64 {
        self.first + self.older as u64
    }

    /// Parts that began in this step.
    pub(crate) fn count(&self) -> usize {
        self.begun.len() - self.older
    }

    pub(crate) fn at(&self, serial: u64) -> Option<PartNumber> {
        let Some(place) = serial.checked_sub(self.first) else {
            return self.lasting.get(&serial).copied();
        };
        self.begun.get(usize::try_from(place).ok()?).copied()
    }

    pub(crate) fn add_thread(&mut self, serial: Weak<AtomicU64>) {
        self.threads.push(serial);
    }

    /// The parts that run now, of all threads: there may be more events of these.
    pub(crate) fn running(&mut self) -> Vec<u64> {
        self.threads.retain(|thread| thread.strong_count() > 0);
        let serials = self.threads.iter().filter_map(Weak::upgrade);
        serials.map(|serial| serial.load(Ordering::Relaxed)).collect()
    }

    /// A step has been written: what was before it is forgotten, but for the parts that ran when it was taken.
    pub(crate) fn forget(&mut self, running: &[u64]) {
        let lasting = running.iter().filter_map(|serial| Some((*serial, self.at(*serial)?)));
        self.lasting = lasting.collect();
        self.begun.drain(..self.older);
        self.first += self.older as u64;
        self.older = self.begun.len();
    }
}
