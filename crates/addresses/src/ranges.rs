//! Ranges of addresses, half-open, none of which overlaps another.

use std::collections::BTreeMap;

/// Ranges, start to length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range.
    pub(crate) fn insert(&mut self, start: u64, length: u64) {
        self.0.insert(start, length);
    }

    /// The length of the range that begins at `start`.
    pub(crate) fn get(&self, start: u64) -> Option<u64> {
        self.0.get(&start).copied()
    }

    /// The range that contains `address`.
    pub(crate) fn containing(&self, address: u64) -> Option<(u64, u64)> {
        let (&start, &length) = self.0.range(..=address).next_back()?;
        (address - start < length).then_some((start, length))
    }

    /// Where the lowest range of at least this length begins.
    pub(crate) fn lowest(&self, length: u64) -> Option<u64> {
        self.0.iter().find(|(_, found)| length <= **found).map(|(start, _)| *start)
    }

    /// The highest range of at least this length.
    pub(crate) fn highest(&self, length: u64) -> Option<(u64, u64)> {
        self.0.iter().rev().find(|(_, found)| length <= **found).map(|(start, len)| (*start, *len))
    }

    /// Takes `[start, start + length)` out of the range that contains it.
    pub(crate) fn cut(&mut self, start: u64, length: u64) {
        let (from, found) = self.containing(start).expect("part of a range");
        let (end, cut_end) = (from + found, start + length);
        assert!(cut_end <= end, "part of one range");
        self.0.remove(&from);
        if from < start {
            self.0.insert(from, start - from);
        }
        if cut_end < end {
            self.0.insert(cut_end, end - cut_end);
        }
    }

    /// Joins the range at `start` with neighbours that touch it and lie in `[from, to)`.
    pub(crate) fn join_within(&mut self, start: u64, from: u64, to: u64) {
        let mut joined = (start, self.0.remove(&start).expect("a range begins here"));
        let end = joined.0 + joined.1;
        if end < to
            && let Some(after) = self.0.remove(&end)
        {
            joined.1 += after;
        }
        if let Some((&before, &length)) = self.0.range(from..start).next_back()
            && before + length == start
        {
            self.0.remove(&before);
            joined = (before, joined.1 + length);
        }
        self.0.insert(joined.0, joined.1);
    }
}
