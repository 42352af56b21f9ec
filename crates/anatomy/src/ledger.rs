//! The ledger of one moment: from the card's total down to what tensors asked for.

use std::collections::BTreeMap;

use allocator::{Moment, Timeline};
use recording::{BlockState, Event, Known};

use crate::account::{Around, Entry, Part};
use crate::lives::Life;

/// The state before the first event.
pub(crate) fn before(timeline: &Timeline) -> Moment {
    let mut moment = Moment::default();
    for segment in &timeline.start {
        moment.reserved += segment.size;
        for block in segment.blocks.iter().filter(|block| block.state != BlockState::Inactive) {
            let is_allocated = block.state == BlockState::Allocated;
            moment.active += block.size;
            moment.requested += block.requested;
            moment.allocated += if is_allocated { block.size } else { 0 };
        }
    }
    moment
}

/// The state after this many events.
pub(crate) fn moment(timeline: &Timeline, time: usize) -> Moment {
    let index = time.min(timeline.moments.len()).checked_sub(1);
    index.map_or_else(|| before(timeline), |index| timeline.moments[index])
}

/// The rows. The parts of the card sum to the card, the parts of `reserved` to `reserved`.
pub(crate) fn ledger(
    around: &Around,
    timeline: &Timeline,
    time: usize,
    lives: &[Life],
    tensors: u64,
) -> Vec<Entry> {
    let Moment { allocated, reserved, active, .. } = moment(timeline, time);
    let row = |part, bytes| Entry { part, bytes, known: Known::Measured };
    let mut rows = around.rows(reserved);
    let cached = reserved.saturating_sub(active);
    let segments = unused_segments(timeline, time, lives).min(cached);
    rows.extend([
        row(Part::Reserved, reserved),
        row(Part::CachedSegments, segments),
        row(Part::CachedFragments, cached - segments),
        row(Part::Waiting, active.saturating_sub(allocated)),
        row(Part::Rounding, allocated.saturating_sub(tensors)),
        row(Part::Tensors, tensors),
    ]);
    rows
}

/// Bytes of segments in which no block is used: `empty_cache` would give them back.
fn unused_segments(timeline: &Timeline, time: usize, lives: &[Life]) -> u64 {
    let mut segments = Segments::default();
    for segment in &timeline.start {
        segments.come(segment.address, segment.size, segment.expandable);
    }
    for next in timeline.segments.iter().take_while(|next| next.at < time) {
        match next.event {
            Event::SegmentAlloc { address, size, .. } => segments.come(address, size, false),
            Event::SegmentMap { address, size, .. } => segments.come(address, size, true),
            Event::SegmentFree { address, size, .. }
            | Event::SegmentUnmap { address, size, .. } => {
                segments.go(address, address.saturating_add(size));
            }
            _ => {}
        }
    }
    for life in lives.iter().filter(|life| life.born <= time && time < life.returned) {
        segments.remove_containing(life.address);
    }
    segments.ranges.values().map(|range| range.size).sum()
}

/// Ranges of addresses that belong to PyTorch.
#[derive(Default)]
struct Segments {
    ranges: BTreeMap<u64, Range>,
}

#[derive(Clone, Copy)]
struct Range {
    size: u64,
    expandable: bool,
}

impl Segments {
    /// Mapped pages that follow each other are one segment: blocks lie across them.
    fn come(&mut self, address: u64, size: u64, expandable: bool) {
        let (mut start, mut end) = (address, address.saturating_add(size));
        if expandable {
            let before = self.ranges.range(..address).next_back().map(|(at, range)| (*at, *range));
            if let Some((at, range)) = before
                && range.expandable
                && at + range.size == address
            {
                self.ranges.remove(&at);
                start = at;
            }
            if let Some(range) = self.ranges.get(&end).copied()
                && range.expandable
            {
                self.ranges.remove(&end);
                end += range.size;
            }
        }
        self.ranges.insert(start, Range { size: end - start, expandable });
    }

    /// What is left of ranges that lie partly outside stays.
    fn go(&mut self, start: u64, end: u64) {
        let touched: Vec<(u64, Range)> = self
            .ranges
            .range(..end)
            .rev()
            .take_while(|(at, range)| start < **at + range.size)
            .map(|(at, range)| (*at, *range))
            .collect();
        for (at, range) in touched {
            self.ranges.remove(&at);
            if at < start {
                self.ranges.insert(at, Range { size: start - at, ..range });
            }
            if end < at + range.size {
                self.ranges.insert(end, Range { size: at + range.size - end, ..range });
            }
        }
    }

    fn remove_containing(&mut self, address: u64) {
        let found = self.ranges.range(..=address).next_back().map(|(at, range)| (*at, range.size));
        if let Some((at, size)) = found
            && address - at < size
        {
            self.ranges.remove(&at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(segments: &Segments) -> Vec<(u64, u64)> {
        segments.ranges.iter().map(|(at, range)| (*at, range.size)).collect()
    }

    #[test]
    fn pages_join_and_are_cut() {
        let mut segments = Segments::default();
        segments.come(100, 10, true);
        segments.come(120, 10, true);
        segments.come(110, 10, true);
        segments.come(130, 10, false);
        assert_eq!(ranges(&segments), [(100, 30), (130, 10)]);
        segments.go(105, 125);
        assert_eq!(ranges(&segments), [(100, 5), (125, 5), (130, 10)]);
        segments.remove_containing(127);
        segments.remove_containing(50);
        assert_eq!(ranges(&segments), [(100, 5), (130, 10)]);
    }
}
