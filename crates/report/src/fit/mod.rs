//! What `fathom fit` found, as text and as `fathom.fit/1`.

mod json;
mod patch;
mod terminal;

use fit::plan::Answer;

pub use json::json;
pub use patch::patch;
pub use terminal::terminal;

/// The whole answer.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The card's name, or its memory.
    pub card: String,
    /// Total memory of the card.
    pub memory_bytes: u64,
    /// What a process needs before its first tensor.
    pub context_bytes: u64,
    /// Plans, and which was chosen.
    pub answer: Answer,
    /// Knobs: name, value, and how the user would write it.
    pub knobs: Vec<(String, String, String)>,
    /// Trials that were run.
    pub run: usize,
    /// From start to end.
    pub wall_seconds: f64,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Fit {
    /// 0 a plan fits, 1 none does, 3 the script failed by itself.
    pub fn exit_code(&self) -> u8 {
        match self.answer.baseline.verdict {
            ::fit::Verdict::Failed(_) => 3,
            _ if self.answer.fits || self.answer.chosen.is_some() => 0,
            _ => 1,
        }
    }
}
