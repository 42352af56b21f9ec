//! What `fathom fit` found, as text and as `fathom.fit/1`.

mod json;
mod patch;
mod terminal;

use fit::plan::Answer;

use crate::Trials;

pub use json::json;
pub use patch::{patch, patch_of};
pub use terminal::terminal;

/// The whole answer.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The card's name, or its memory.
    pub card: String,
    /// Total memory of the card.
    pub memory_bytes: u64,
    /// What other programs hold of it.
    pub used_bytes: u64,
    /// What a process needs before its first tensor.
    pub context_bytes: u64,
    /// Plans, and which was chosen.
    pub answer: Answer,
    /// Knobs: name, value, and how the user would write it.
    pub knobs: Vec<(String, String, String)>,
    pub trials: Trials,
}

impl Fit {
    /// What a run can have, its context included.
    pub(crate) fn available_bytes(&self) -> u64 {
        self.memory_bytes.saturating_sub(self.used_bytes)
    }

    /// 0 a plan fits, 1 none does, 3 the script failed for another reason, 4 the search was broken off.
    pub fn exit_code(&self) -> u8 {
        match self.answer.baseline.outcome {
            _ if self.trials.unfinished.is_some() => 4,
            ::fit::Outcome::Failed(_) => 3,
            _ if self.answer.as_it_is.fits() || self.answer.chosen.is_some() => 0,
            _ => 1,
        }
    }
}
