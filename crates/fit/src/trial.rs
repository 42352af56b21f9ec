//! What is asked of a runner, and what it answers.

use anatomy::Peaks;

/// A card to fit, as far as a search has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name in the catalogue.
    pub name: String,
    /// Bytes that a process can allocate on it: its memory without the context.
    pub usable_bytes: u64,
    /// Bytes of its context.
    pub context_bytes: u64,
    /// Cards of one kind differ in memory alone, so a run without a limit answers for all of them.
    pub kind: usize,
}

/// How much memory the card of a trial has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Memory {
    Own,
    /// As much as is asked for: what would be needed.
    Unlimited,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// A value for each knob, in their order.
    pub values: Vec<String>,
    /// The card, by its index.
    pub card: usize,
    pub memory: Memory,
}

/// Whether a run fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It went through.
    Fits,
    /// It went through with what was assumed of values that nobody knows, and may not with others.
    FitsIf,
    /// It ran out of memory.
    DoesNotFit,
    /// The script failed for another reason; why.
    Failed(String),
    /// Something else ended the search first: nothing is known.
    NotRun,
}

impl Outcome {
    /// Whether it went through, with what was assumed if something was.
    pub fn fits(&self) -> bool {
        matches!(self, Outcome::Fits | Outcome::FitsIf)
    }
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Fits or not.
    pub outcome: Outcome,
    /// Up to where it came.
    pub peaks: Peaks,
}

impl Measured {
    /// Of a trial that nobody has made.
    pub fn not_run() -> Measured {
        Measured { outcome: Outcome::NotRun, peaks: Peaks::default() }
    }
}

pub trait Runner {
    /// Why trials cannot be made at all.
    type Error;

    /// All of these, in this order; several may run at once.
    fn run(&mut self, trials: &[Trial]) -> Result<Vec<Measured>, Self::Error>;

    /// Whether a trial's answer is known already, or another job's to find: neither is predicted.
    fn is_settled(&mut self, _: &Trial) -> bool {
        false
    }
}

/// The one rule for which run may give a verdict on a card: a run on the card itself, or one without a limit
/// that stays within its memory, since a card never refuses what it has room for. `None`: run the card.
///
/// A run without a limit that takes more says nothing about a smaller card of the same kind. There PyTorch
/// gives cached segments back, cuDNN does with a smaller workspace, and a script may catch the error and go
/// on: what was allocated without a limit is no lower bound.
pub fn verdict_for(card: &Target, unlimited: &Measured) -> Option<Outcome> {
    let Measured { outcome, peaks } = unlimited;
    if !outcome.fits() {
        // With less memory than all there is it would not end better.
        return Some(outcome.clone());
    }
    // PyTorch's memory, and what libraries such as NCCL take besides.
    let taken = peaks.device.saturating_sub(card.context_bytes).max(peaks.reserved);
    (taken <= card.usable_bytes).then(|| outcome.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unlimited(allocated: u64, reserved: u64, device: u64) -> Measured {
        Measured { outcome: Outcome::Fits, peaks: Peaks { allocated, reserved, device } }
    }

    const USABLE: u64 = 1000;

    fn card() -> Target {
        Target { name: String::new(), usable_bytes: USABLE, context_bytes: 100, kind: 0 }
    }

    #[test]
    fn what_libraries_take_counts_as_well() {
        assert_eq!(verdict_for(&card(), &unlimited(800, 900, 1000)), Some(Outcome::Fits));
        assert_eq!(verdict_for(&card(), &unlimited(800, 900, 1101)), None, "NCCL has 101 more");
    }

    #[test]
    fn a_run_without_a_limit_that_takes_more_says_nothing() {
        assert_eq!(verdict_for(&card(), &unlimited(4 * USABLE, 4 * USABLE, 4 * USABLE)), None);
        let failed = Measured { outcome: Outcome::Failed("why".into()), ..unlimited(0, 0, 0) };
        assert_eq!(verdict_for(&card(), &failed), Some(failed.outcome));
    }

    #[test]
    fn what_was_assumed_without_a_limit_is_assumed_on_the_card_too() {
        let open = Measured { outcome: Outcome::FitsIf, ..unlimited(800, 900, 1000) };
        assert_eq!(verdict_for(&card(), &open), Some(Outcome::FitsIf));
    }
}
