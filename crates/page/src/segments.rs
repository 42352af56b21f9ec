//! Segments over time, and what is reserved.

use allocator::Timeline;
use recording::{Event, Segment};

use crate::clock::Clock;

/// A segment, or a mapped range of an expandable one, from the tick it comes up to the tick it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) stream: u64,
    pub(crate) pool: (u32, u32),
    /// 1 if it is a mapped range of an expandable segment.
    pub(crate) expandable: bool,
    pub(crate) born: u32,
    /// `None` if it stays.
    pub(crate) gone: Option<u32>,
}

impl Range {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }

    /// The part of it between two addresses; `None` if there is none.
    fn part(&self, from: u64, to: u64) -> Option<Range> {
        let (from, to) = (from.max(self.address), to.min(self.end()));
        (from < to).then(|| Range { address: from, size: to - from, ..*self })
    }
}

/// All ranges, in the order in which they came.
pub(crate) fn ranges(timeline: &Timeline, clock: &Clock) -> Vec<Range> {
    let mut open: Vec<Range> = timeline.start.iter().map(of_start).collect();
    let mut closed = Vec::new();
    for next in &timeline.segments {
        let tick = clock.seen(next.at + 1);
        match next.event {
            Event::SegmentAlloc { address, size, stream, pool }
            | Event::SegmentMap { address, size, stream, pool } => {
                let expandable = matches!(next.event, Event::SegmentMap { .. });
                let (born, gone) = (tick, None);
                open.push(Range { address, size, stream, pool, expandable, born, gone });
            }
            Event::SegmentFree { address, size, .. }
            | Event::SegmentUnmap { address, size, .. } => {
                close(&mut open, &mut closed, (address, address.saturating_add(size)), tick);
            }
            _ => {}
        }
    }
    closed.append(&mut open);
    closed.sort_by_key(|range| (range.born, range.address));
    closed
}

fn of_start(segment: &Segment) -> Range {
    let Segment { address, size, stream, pool, expandable, .. } = *segment;
    Range { address, size, stream, pool, expandable, born: 0, gone: None }
}

/// Ends what lies between two addresses; what sticks out on either side stays.
fn close(open: &mut Vec<Range>, closed: &mut Vec<Range>, (from, to): (u64, u64), tick: u32) {
    let touched = |range: &mut Range| range.part(from, to).is_some();
    let hit: Vec<Range> = open.extract_if(.., touched).collect();
    for range in hit {
        closed.extend(range.part(from, to).map(|part| Range { gone: Some(tick), ..part }));
        open.extend(range.part(0, from));
        open.extend(range.part(to, u64::MAX));
    }
}

/// Ticks at which the reserved bytes change, and what they are then.
pub(crate) fn reserved(timeline: &Timeline, clock: &Clock) -> Vec<(u32, u64)> {
    let start = timeline.start.iter().fold(0u64, |sum, segment| sum.saturating_add(segment.size));
    let mut changes = vec![(0, start)];
    let mut now = start;
    for (index, moment) in timeline.moments.iter().enumerate() {
        if moment.reserved == now {
            continue;
        }
        now = moment.reserved;
        let tick = clock.seen(index + 1);
        match changes.last_mut() {
            Some(last) if last.0 == tick => last.1 = now,
            _ => changes.push((tick, now)),
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmapped_middle_leaves_both_ends() {
        let (stream, pool, expandable) = (0, (0, 0), true);
        let whole = Range { address: 10, size: 30, stream, pool, expandable, born: 1, gone: None };
        let (mut open, mut closed) = (vec![whole], Vec::new());
        close(&mut open, &mut closed, (20, 25), 7);
        let spans = |ranges: &[Range]| {
            ranges.iter().map(|range| (range.address, range.size, range.gone)).collect::<Vec<_>>()
        };
        assert_eq!(spans(&open), [(10, 10, None), (25, 15, None)]);
        assert_eq!(spans(&closed), [(20, 5, Some(7))]);
    }
}
