//! What a comparison gives: plain data. The rows of each dimension sum to the difference of the peaks.

use std::cmp::Reverse;

use crate::side::{Side, Totals};

/// The whole: what B has more or less than A.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    pub a: Given,
    pub b: Given,
    /// The allocated peaks.
    pub allocated: Change,
    /// Bytes asked for at those.
    pub requested: Change,
    /// The reserved peaks.
    pub reserved: Change,
    /// Memory taken from the card, context included; `None` unless both sides know it.
    pub device: Option<Change>,
    /// The smallest card; `None` unless both sides know it.
    pub floor: Option<Change>,
    /// By category, in the order of reports.
    pub categories: Vec<Named>,
    /// By module, the greatest change first. `own` sums to the difference.
    pub modules: Vec<ModuleRow>,
    /// By operator, the greatest change first.
    pub operators: Vec<Named>,
    /// By line, the greatest change first.
    pub lines: Vec<LineRow>,
    /// By what tensors are, the greatest change first.
    pub tensors: Vec<TensorRow>,
    /// Phases with their own peaks over all steps, in order.
    pub phases: Vec<PhaseRow>,
    /// Causes: new, gone, grown.
    pub findings: Vec<FindingRow>,
    /// Modules that were known again under another path: `module.fc was fc`, in words.
    pub renamed: Vec<String>,
    /// What makes the two sides hard to compare.
    pub notes: Vec<String>,
}

/// What a side is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// As it was given on the command line.
    pub name: String,
    /// The version of torch; empty if not known.
    pub torch: String,
    /// The card; empty if not known.
    pub card: String,
    /// When its peak was; empty if not known.
    pub when: String,
    pub totals: Totals,
    /// Whether memory ran out.
    pub ran_out: bool,
}

impl Given {
    pub(crate) fn of(side: &Side) -> Given {
        let Side { name, torch, card, when, totals, ran_out, .. } = side.clone();
        Given { name, torch, card, when, totals, ran_out }
    }
}

/// Bytes or a count on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub a: u64,
    pub b: u64,
}

/// What became of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Only B has it.
    New,
    /// Only A has it.
    Gone,
    /// B has more of it.
    Grown,
    /// B has less of it.
    Shrunk,
    /// Both have as much.
    Same,
}

impl Change {
    /// How much more B has; less than 0 if less.
    pub fn delta(self) -> i64 {
        let more = i128::from(self.b) - i128::from(self.a);
        more.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// What became of it.
    pub fn status(self) -> Status {
        match (self.a, self.b) {
            (a, b) if a == b => Status::Same,
            (0, _) => Status::New,
            (_, 0) => Status::Gone,
            (a, b) if a < b => Status::Grown,
            _ => Status::Shrunk,
        }
    }

    /// Sorts the greatest change first, and what did not change by its size.
    pub(crate) fn rank(self) -> Reverse<(u64, u64)> {
        Reverse((self.delta().unsigned_abs(), self.a.max(self.b)))
    }

    /// Both changes together.
    pub(crate) fn add(&mut self, other: Change) {
        self.a += other.a;
        self.b += other.b;
    }
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::New => "new",
            Status::Gone => "gone",
            Status::Grown => "grown",
            Status::Shrunk => "shrunk",
            Status::Same => "same",
        }
    }
}

/// A category or an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Empty if not known.
    pub name: String,
    /// Bytes of blocks; of categories bytes asked for, with rounding apart.
    pub bytes: Change,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleRow {
    /// Its path in B, or in A if B has none; empty for what belongs to no module.
    pub path: String,
    pub class: String,
    /// Its path in A, if that was another.
    pub was: Option<String>,
    /// Bytes that are its own.
    pub own: Change,
    /// Those, and of the modules below.
    pub total: Change,
}

/// Where a line is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Empty if not known.
    pub file: String,
    /// From 1; 0 if not known.
    pub line: u32,
    /// The function around it.
    pub function: String,
}

/// A line of source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineRow {
    /// In B, or in A if B has none.
    pub place: Place,
    /// What stands there; empty if not known.
    pub source: String,
    /// Its place in A, if that was another.
    pub was: Option<Place>,
    /// Bytes of blocks.
    pub bytes: Change,
    /// How many blocks.
    pub count: Change,
}

/// Tensors of one category, dtype and shape that one operator made in one module at one line. Modules
/// that differ in their numbers only count as one: `layers.{0-11}.attn`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorRow {
    /// E.g. `activations`; empty for the row of all that is not listed.
    pub category: String,
    /// E.g. `float32[8, 512]`, in B or else in A; empty if not known.
    pub what: String,
    /// The same in A, if that was another.
    pub was: Option<String>,
    /// The names of parameters and the like, under one.
    pub name: String,
    /// Their modules under one name, in B or else in A.
    pub module: String,
    /// The operator, or the autograd node.
    pub operator: String,
    /// In B, or in A if B has none.
    pub place: Place,
    /// What stands there; empty if not known.
    pub source: String,
    /// Bytes of blocks.
    pub bytes: Change,
    pub count: Change,
}

/// A phase: the greatest of all steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseRow {
    /// E.g. `backward`.
    pub name: String,
    /// `memory_allocated`.
    pub allocated: Change,
    /// `memory_reserved`.
    pub reserved: Change,
}

/// A root cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingRow {
    pub id: String,
    /// One line, in B or else in A.
    pub title: String,
    /// Bytes that it explains.
    pub bytes: Change,
}
