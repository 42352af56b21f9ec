//! What a replay gives: the allocator's answer to every event.

use recording::{BlockState, Event, Segment};

use crate::oom::OutOfMemory;
use crate::stats::Stats;

/// After one event of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Start of the block the event is about; 0 if it is about none.
    pub address: u64,
    /// Length of that block.
    pub block: u64,
    /// Bytes of blocks handed out: `memory_allocated`.
    pub allocated: u64,
    /// Bytes of segments and pages: `memory_reserved`.
    pub reserved: u64,
    /// Bytes of blocks handed out or still used by a stream.
    pub active: u64,
    /// Bytes asked for of those.
    pub requested: u64,
}

/// A segment came, grew, shrank or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEvent {
    /// Index of the recording's event that caused it.
    pub at: usize,
    pub event: Event,
}

/// How a replay ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every request was met.
    Completed,
    /// A request was not met, and the replay ends there.
    OutOfMemory {
        /// Index of the recording's event.
        at: usize,
        /// Why, and what PyTorch says.
        error: OutOfMemory,
    },
}

/// A recording under some settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Segments and blocks before the first event.
    pub start: Vec<Segment>,
    /// One per event, as far as the replay came.
    pub moments: Vec<Moment>,
    /// Segments coming and going, in order.
    pub segments: Vec<SegmentEvent>,
    /// Indices of events at which all streams were waited for: blocks they used are free then.
    pub synchronized: Vec<usize>,
    /// Statistics after the last event; peaks count from the first.
    pub stats: Stats,
    /// How it ended.
    pub outcome: Outcome,
    /// Requests that failed in the recording and are met here, as indices of its `oom` events. What
    /// the program would have done with the memory is not known; it is given back at once.
    pub rescued: Vec<usize>,
    /// Segments and blocks after the last event.
    pub finish: Vec<Segment>,
}

/// Failed requests that the recorded program died of: after them it asked for nothing more. Others it
/// caught, and went on without.
pub fn fatal(events: &[Event]) -> impl Iterator<Item = usize> {
    let last = events.iter().rposition(|event| matches!(event, Event::Alloc { .. }));
    let after = last.map_or(0, |last| last + 1);
    let rest = events.iter().enumerate().skip(after);
    rest.filter(|(_, event)| matches!(event, Event::OutOfMemory { .. })).map(|(at, _)| at)
}

impl Timeline {
    /// Index of the first event that this card could not do: a request that was met when it was
    /// recorded, or the one that the recorded program died of. `None` if it runs to its end.
    pub fn unmet(&self, events: &[Event]) -> Option<usize> {
        match &self.outcome {
            Outcome::OutOfMemory { at, .. } => Some(*at),
            Outcome::Completed => fatal(events).find(|at| self.rescued.binary_search(at).is_err()),
        }
    }

    /// Segments or pages taken from the card, and given back to it.
    pub fn segment_counts(&self) -> (usize, usize) {
        let gives_back = |segment: &&SegmentEvent| {
            matches!(segment.event, Event::SegmentFree { .. } | Event::SegmentUnmap { .. })
        };
        let back = self.segments.iter().filter(gives_back).count();
        (self.segments.len() - back, back)
    }

    /// Bytes reserved and not in use at the reserved peak; of all moments at the peak, the one at
    /// which most is in use.
    pub fn fragmentation_at_peak(&self) -> u64 {
        let blocks = self.start.iter().flat_map(|segment| &segment.blocks);
        let used = blocks.filter(|block| block.state != BlockState::Inactive);
        let active: u64 = used.map(|block| block.size).sum();
        let reserved: u64 = self.start.iter().map(|segment| segment.size).sum();
        let start = (reserved, active);
        let moments = self.moments.iter().map(|moment| (moment.reserved, moment.active));
        let (reserved, active) = moments.fold(start, std::cmp::Ord::max);
        reserved.saturating_sub(active)
    }
}
