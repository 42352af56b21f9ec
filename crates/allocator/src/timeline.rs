//! What a replay gives: the allocator's answer to every event.

use recording::{Event, Segment};

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
    /// What happened.
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
