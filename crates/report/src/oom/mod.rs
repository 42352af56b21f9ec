//! What texts say about memory, for people ([`terminal`]) and for programs ([`json`]).

mod json;
mod sentences;
mod terminal;
mod verdict;
mod why;

use std::fmt;

use oom::reconcile::Reconciliation;
use oom::{Account, Advice, Balance, Refutation, Solution};
use study::Sought;

pub use json::json;
pub use terminal::terminal;

#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// Messages and tables, the one that matters first.
    pub entries: Vec<Entry>,
    /// Shapes of the size that was tried.
    pub solution: Option<Solution>,
    /// Claimed shapes, held against it.
    pub claims: Vec<Refutation>,
    /// Figures that were given, brought together.
    pub reconciliation: Option<Reconciliation>,
    /// The card whose context was taken for that.
    pub card: Option<String>,
    /// The allocations of that size in a run on the phantom.
    pub sought: Option<Sought>,
    /// Commands to try next, the one that goes furthest last.
    pub next: Vec<Next>,
}

/// A command to type next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// What it is good for.
    pub why: String,
    pub command: String,
}

impl fmt::Display for Next {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.why, self.command)
    }
}

/// One message or table, weighed.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The file it stands in.
    pub file: String,
    /// What it says.
    pub account: Account,
    pub balance: Balance,
    /// Which advice can help.
    pub advice: Vec<Advice>,
}

impl Texts {
    /// The entry that matters: the first that was refused, else the first.
    pub fn main(&self) -> Option<&Entry> {
        self.entries.first()
    }
}
