//! An answer that was tried.

use anatomy::bytes;

use super::{Answer, Effect};

/// Peaks of a run without a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    pub allocated: u64,
    pub reserved: u64,
}

/// The same script before and after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub before: Peaks,
    pub after: Peaks,
}

/// Less of the peak than this part is no difference: one in so many.
const SAME: u64 = 1000;

impl Change {
    /// The word for JSON.
    pub fn name(self) -> &'static str {
        let (before, after) = (self.before.allocated, self.after.allocated);
        match before.abs_diff(after) <= before / SAME {
            true => "none",
            false if after < before => "lowers",
            false => "worse",
        }
    }
}

impl Answer {
    /// With what its trial gave; what was said before stays as the reason.
    pub fn measured(&mut self, change: Change) {
        let Change { before, after } = change;
        let reserved =
            format!("reserved {} → {}", bytes::text(before.reserved), bytes::text(after.reserved));
        self.why = format!(
            "tried: allocated {} → {}, {reserved}; {}",
            bytes::text(before.allocated),
            bytes::text(after.allocated),
            self.why
        );
        self.effect = Effect::Measured(change);
    }

    /// With why its trial gave nothing.
    pub fn not_tried(&mut self, why: &str) {
        self.why = format!("{}; not tried: {why}", self.why);
    }
}
