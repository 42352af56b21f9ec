//! The rows of a ledger, and what stands around PyTorch's memory on its card.

use recording::{About, Known};

/// A part of a card's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// All of it.
    Card,
    /// What other programs hold.
    Programs,
    /// What the run's other processes hold.
    Others,
    /// What a process takes before its first tensor.
    Context,
    /// Buffers of NCCL.
    Nccl,
    Free,
    /// What PyTorch holds.
    Reserved,
    /// Of that, segments in which nothing is used: `empty_cache` would give them back.
    CachedSegments,
    /// Free blocks of segments that are in use.
    CachedFragments,
    /// Blocks given back that a stream still uses.
    Waiting,
    /// What blocks have beyond their requests.
    Rounding,
    /// What tensors asked for.
    Tensors,
}

impl Part {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Part::Card => "card",
            Part::Programs => "programs",
            Part::Others => "others",
            Part::Context => "context",
            Part::Nccl => "nccl",
            Part::Free => "free",
            Part::Reserved => "reserved",
            Part::CachedSegments => "cached_segments",
            Part::CachedFragments => "cached_fragments",
            Part::Waiting => "waiting",
            Part::Rounding => "rounding",
            Part::Tensors => "tensors",
        }
    }

    /// 0 the card, 1 its parts, 2 the parts of what is reserved. The parts of each sum to it.
    pub fn depth(self) -> u8 {
        match self {
            Part::Card => 0,
            part if part <= Part::Reserved => 1,
            _ => 2,
        }
    }
}

/// A row of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Of the card's memory.
    pub part: Part,
    pub bytes: u64,
    /// How they are known.
    pub known: Known,
}

/// What stands around PyTorch's memory on its card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// The card's memory; `None` if no card is named: nothing is said of one then.
    pub card_bytes: Option<u64>,
    /// What other programs hold of it.
    pub programs_bytes: u64,
    /// What the run's other processes hold of it.
    pub others: (u64, Known),
    /// The context of the process itself.
    pub context: (u64, Known),
    /// What NCCL is taken to hold.
    pub nccl_bytes: u64,
}

impl Around {
    /// As far as a recording says.
    pub fn of(about: &About) -> Around {
        Around {
            card_bytes: (about.memory_bytes != 0).then_some(about.memory_bytes),
            context: (about.context_bytes, Known::Measured),
            ..Around::default()
        }
    }

    /// The rows of the card beside what PyTorch has reserved. They sum to the card with it, if it has room for all.
    pub(crate) fn rows(&self, reserved: u64) -> Vec<Entry> {
        let Some(card) = self.card_bytes else { return Vec::new() };
        let (context, how) = self.context;
        let taken = [self.programs_bytes, self.others.0, context, reserved];
        let left = taken.iter().fold(card, |left, bytes| left.saturating_sub(*bytes));
        let nccl = self.nccl_bytes.min(left);
        let row = |part, bytes, known| Entry { part, bytes, known };
        let rows = [
            Some(row(Part::Card, card, Known::Measured)),
            (self.programs_bytes != 0)
                .then(|| row(Part::Programs, self.programs_bytes, Known::Assumed)),
            (self.others.0 != 0).then(|| row(Part::Others, self.others.0, self.others.1)),
            Some(row(Part::Context, context, how)),
            (self.nccl_bytes != 0).then(|| row(Part::Nccl, nccl, Known::Modelled)),
            // What is left is known as well as what was taken.
            Some(row(Part::Free, left - nccl, how)),
        ];
        rows.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_card_sum_to_it() {
        let around = Around {
            card_bytes: Some(1000),
            programs_bytes: 100,
            others: (50, Known::Modelled),
            context: (30, Known::Assumed),
            nccl_bytes: 20,
        };
        let rows = around.rows(500);
        let parts = rows.iter().filter(|row| row.part.depth() == 1).map(|row| row.bytes);
        assert_eq!(parts.sum::<u64>() + 500, 1000);
        let free = rows.last().unwrap();
        assert_eq!((free.part, free.bytes, free.known), (Part::Free, 300, Known::Assumed));
        // NCCL has no more than there is.
        let full = around.rows(810);
        assert_eq!(
            full.iter().map(|row| row.bytes).collect::<Vec<_>>(),
            [1000, 100, 50, 30, 10, 0]
        );
        assert!(Around::default().rows(500).is_empty());
    }
}
