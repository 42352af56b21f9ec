//! How far a change alters what a script computes.

use std::fmt;

/// The mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// The same numbers, bit by bit.
    Exact,
    /// The same function; sums may be taken in another order.
    NumericallyEqual,
    /// Other rounding: numbers of fewer bits.
    ChangesNumerics,
    /// Averages over other sets: a smaller batch, batch norm over parts of it.
    ChangesStatistics,
    /// Another training: another optimizer, fewer parameters that learn.
    ChangesTraining,
    /// The model computes something else.
    ChangesFunction,
}

impl Label {
    /// For people and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Label::Exact => "exact",
            Label::NumericallyEqual => "numerically equal",
            Label::ChangesNumerics => "changes numerics",
            Label::ChangesStatistics => "changes batch statistics",
            Label::ChangesTraining => "changes training",
            Label::ChangesFunction => "changes the function",
        }
    }

    /// Whether it is tried only if the user allows it.
    pub fn needs_consent(self) -> bool {
        Label::ChangesTraining <= self
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
