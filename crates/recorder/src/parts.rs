//! Parts of a script: what an allocation belongs to. Each time one begins, it gets a serial number.

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
}

impl Default for Parts {
    fn default() -> Parts {
        Parts {
            list: vec![Part::default()],
            numbers: Map::from_iter([(Part::default(), NOTHING)]),
            begun: Vec::new(),
            first: 1,
            older: 0,
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
        let place = serial.checked_sub(self.first)?;
        self.begun.get(usize::try_from(place).ok()?).copied()
    }

    /// A step has been written: what was before it is forgotten.
    pub(crate) fn forget(&mut self) {
        self.begun.drain(..self.older);
        self.first += self.older as u64;
        self.older = self.begun.len();
    }
}
