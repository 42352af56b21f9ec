//! What is asked of a runner, and what it answers.

/// A card that a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
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
    /// Its own.
    Own,
    /// As much as is asked for: what would be needed.
    Unlimited,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// A value for each knob, in their order.
    pub values: Vec<String>,
    /// The card, by its index.
    pub card: usize,
    /// Its memory.
    pub memory: Memory,
}

/// Whether a run fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It went through.
    Fits,
    /// It ran out of memory.
    DoesNotFit,
    /// The script failed by itself; why.
    Failed(String),
}

/// Peaks of a run, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// PyTorch's `max_memory_allocated`.
    pub allocated: u64,
    /// PyTorch's `max_memory_reserved`.
    pub reserved: u64,
    /// Taken from the card, context included.
    pub device: u64,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Fits or not.
    pub verdict: Verdict,
    /// Up to where it came.
    pub peaks: Peaks,
}

/// Makes trials.
pub trait Runner {
    /// Why trials cannot be made at all.
    type Error;

    /// All of these, in this order; several may run at once.
    fn run(&mut self, trials: &[Trial]) -> Result<Vec<Measured>, Self::Error>;
}

/// What a run without a limit says about a card of the same kind: the card never refuses what it has
/// room for, so what was taken from it, by PyTorch and by libraries such as NCCL, fits if it is within
/// its memory; and whatever is allocated at once must be there
/// at once. In between PyTorch gives cached segments back and tries again: only a run can tell.
pub fn verdict_for(card: &Card, unlimited: &Peaks) -> Option<Verdict> {
    let taken = unlimited.device.saturating_sub(card.context_bytes).max(unlimited.reserved);
    if taken <= card.usable_bytes {
        return Some(Verdict::Fits);
    }
    (card.usable_bytes < unlimited.allocated).then_some(Verdict::DoesNotFit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libraries_take_counts_as_well() {
        let card = Card { name: String::new(), usable_bytes: 1000, context_bytes: 100, kind: 0 };
        let peaks = |allocated, reserved, device| Peaks { allocated, reserved, device };
        assert_eq!(verdict_for(&card, &peaks(800, 900, 1000)), Some(Verdict::Fits));
        assert_eq!(verdict_for(&card, &peaks(800, 900, 1101)), None, "NCCL has 101 more");
        assert_eq!(verdict_for(&card, &peaks(1001, 1001, 1101)), Some(Verdict::DoesNotFit));
    }
}
