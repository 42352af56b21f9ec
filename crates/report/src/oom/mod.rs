//! What texts say about memory, for people ([`terminal`]) and for programs ([`json`]).

mod json;
mod sentences;
mod terminal;

use anatomy::Alike;
use oom::reconcile::Reconciliation;
use oom::{Account, Advice, Balance, Refutation, Solution};

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
    /// Commands to try next.
    pub next: Vec<String>,
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

/// Allocations of the size that was tried, in a run on the phantom.
#[derive(Clone, Debug, Default)]
pub struct Sought {
    /// The phantom's memory; `None` if it had no end.
    pub memory_bytes: Option<u64>,
    /// Steps of the optimizer that were seen.
    pub steps: u64,
    /// Whether the run ended in such a request that found no room.
    pub refused: Option<Refused>,
    /// Small requests want a segment of a fixed size: these may be of any size that wants such a one.
    pub by_segment: bool,
    /// Allocations of that size.
    pub matches: Vec<Alike>,
    /// Without one, those nearest in size.
    pub nearest: Vec<Alike>,
    /// The version of torch.
    pub torch: String,
}

/// A request of that size that found no room on the phantom either.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    /// Its bytes, rounded as the allocator rounds.
    pub bytes: u64,
    pub origin: anatomy::Origin,
}

impl Texts {
    /// The entry that matters: the first that was refused, else the first.
    pub fn main(&self) -> Option<&Entry> {
        self.entries.first()
    }
}
