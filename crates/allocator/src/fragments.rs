//! How memory lies in pieces at one moment, and why a request found no room in it.
//!
//! [`after`] gives the moment of a recorded event: its peak, or a failed request. [`Shortage::of`] looks at
//! such a moment with the eyes of one request. Numbers only: how they are told is for the report.

use recording::{Block, BlockState, Event, Recording, Segment};

use crate::layout;
use crate::oom::OutOfMemory;
use crate::reproduce::{Difference, reproduce_until};
use crate::settings::{SMALL_SIZE, Settings};
use crate::timeline::{Outcome, Timeline};

/// Segments and blocks at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragments {
    /// In order of addresses, each with its blocks and their states.
    pub segments: Vec<Segment>,
    /// One row for each pool, kind and stream that has a segment: first the default pool, small
    /// before large.
    pub pools: Vec<PoolUse>,
}

/// What the segments of one pool, kind and stream hold. Only a request of the same three can have
/// one of their free blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUse {
    /// Private pool, or (0, 0).
    pub pool: (u32, u32),
    /// Of the large pool, else of the small one.
    pub large: bool,
    /// The raw stream.
    pub stream: u64,
    /// Segments, or mapped ranges.
    pub segments: usize,
    pub reserved: u64,
    /// Bytes of blocks handed out.
    pub allocated: u64,
    /// Bytes of blocks given back that a stream still uses.
    pub pending: u64,
    /// Bytes of free blocks.
    pub free: u64,
    /// How many free blocks there are.
    pub free_blocks: usize,
    /// The largest free block.
    pub largest_free: u64,
    /// Bytes of segments that are wholly free: the allocator gives them back before a request fails.
    pub releasable: u64,
}

/// Why a request found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is larger than all that PyTorch may have.
    LargerThanCard,
    /// Free blocks of its own pool and stream would add up to it, but none is large enough, and
    /// blocks in use keep their segments from being given back.
    Scattered,
    /// A free block of the right pool and large enough is another stream's.
    OtherStream,
    /// Blocks already given back would do, but streams still use them.
    Pending,
    /// Free blocks of other pools, kinds or streams would do, but pools do not share.
    OtherPools,
    /// A limit was set (`per_process_memory_fraction`); the card itself had room.
    Limit,
    /// Memory is in use: with all free blocks in one piece it would not have been enough.
    Full,
}

/// A request that was not met, beside what was free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The request, rounded.
    pub size: u64,
    /// The segment that was asked of the card for it.
    pub segment: u64,
    /// What the card had left; `None` if that is not known.
    pub card_free: Option<u64>,
    /// Its own pool, kind and stream: zero in all numbers if there is no such segment.
    pub own: PoolUse,
    /// Free bytes of the same pool and kind on other streams, and the largest of those blocks.
    pub other_streams: (u64, u64),
    /// Free bytes of the other kind of the same pool: small blocks of a large request and so on.
    pub other_kind: u64,
    /// Free bytes of other pools.
    pub other_pools: u64,
    /// Bytes of all blocks that only a stream still uses.
    pub pending: u64,
    /// What it comes down to.
    pub reason: Reason,
}

/// The moment after an event of a recording, under the settings it was made with: the slow way, which [`after`] is
/// held to. After a request
/// that failed, the cache is already emptied. `Err` if the recording is not reproduced up to there.
pub fn at(
    recording: &Recording,
    settings: &Settings,
    event: usize,
) -> Result<Fragments, Difference> {
    let end = event.saturating_add(1).min(recording.events.len());
    let result = reproduce_until(recording, settings, end);
    match result.difference {
        Some(difference) if difference.event < end => Err(difference),
        _ => Ok(Fragments::of(result.timeline.finish)),
    }
}

/// The same from a timeline of the recording under these settings; `None` if it ends before the event.
pub fn after(
    recording: &Recording,
    timeline: &Timeline,
    settings: &Settings,
    event: usize,
) -> Option<Fragments> {
    layout::after(recording, timeline, settings, event).map(Fragments::of)
}

/// The first event after which most bytes were handed out.
pub fn peak(timeline: &Timeline) -> Option<usize> {
    let most = timeline.moments.iter().map(|moment| moment.allocated).max()?;
    timeline.moments.iter().position(|moment| moment.allocated == most)
}

impl Fragments {
    /// Sums up segments.
    pub fn of(segments: Vec<Segment>) -> Fragments {
        let mut pools: Vec<PoolUse> = Vec::new();
        for segment in &segments {
            let Segment { pool, large, stream, .. } = *segment;
            let same =
                |row: &&mut PoolUse| (row.pool, row.large, row.stream) == (pool, large, stream);
            match pools.iter_mut().find(same) {
                Some(row) => row.add(segment),
                None => {
                    let mut row = PoolUse { pool, large, stream, ..PoolUse::default() };
                    row.add(segment);
                    pools.push(row);
                }
            }
        }
        pools.sort_by_key(|row| (row.pool, row.large, row.stream));
        Fragments { segments, pools }
    }

    /// Free blocks of one row, largest first.
    pub fn free_blocks(&self, row: &PoolUse) -> Vec<Block> {
        let own = self.segments.iter().filter(|segment| {
            (segment.pool, segment.large, segment.stream) == (row.pool, row.large, row.stream)
        });
        let blocks = own.flat_map(|segment| &segment.blocks);
        let mut free: Vec<Block> =
            blocks.filter(|block| block.state == BlockState::Inactive).copied().collect();
        free.sort_by_key(|block| (std::cmp::Reverse(block.size), block.address));
        free
    }
}

impl PoolUse {
    fn add(&mut self, segment: &Segment) {
        self.segments += 1;
        self.reserved += segment.size;
        for block in &segment.blocks {
            match block.state {
                BlockState::Allocated => self.allocated += block.size,
                BlockState::PendingFree => self.pending += block.size,
                BlockState::Inactive => {
                    self.free += block.size;
                    self.free_blocks += 1;
                    self.largest_free = self.largest_free.max(block.size);
                }
            }
        }
        if segment.blocks.iter().all(|block| block.state == BlockState::Inactive) {
            self.releasable += segment.size;
        }
    }
}

impl Shortage {
    /// Why an `oom` event of a recording failed; `None` for any other event.
    pub fn of_event(fragments: &Fragments, settings: &Settings, event: &Event) -> Option<Shortage> {
        match *event {
            Event::OutOfMemory { size, free, stream, pool } => {
                Some(Shortage::of(fragments, settings, (size, stream, pool), Some(free)))
            }
            _ => None,
        }
    }

    /// Why a replay ended; `None` if every request was met.
    pub fn of_replay(
        recording: &Recording,
        settings: &Settings,
        timeline: &Timeline,
    ) -> Option<Shortage> {
        let Outcome::OutOfMemory { at, error } = &timeline.outcome else { return None };
        let OutOfMemory { size, free, .. } = *error;
        let (stream, pool) = match recording.events.get(*at) {
            Some(Event::Alloc { stream, pool, .. }) => (*stream, *pool),
            _ => (0, (0, 0)),
        };
        let fragments = Fragments::of(timeline.finish.clone());
        Some(Shortage::of(&fragments, settings, (size, stream, pool), free))
    }

    /// Looks at a moment for a request of this rounded size, stream and pool.
    pub fn of(
        fragments: &Fragments,
        settings: &Settings,
        (size, stream, pool): (u64, u64, (u32, u32)),
        card_free: Option<u64>,
    ) -> Shortage {
        let large = SMALL_SIZE < size;
        let empty = PoolUse { pool, large, stream, ..PoolUse::default() };
        let mut found = Shortage {
            size,
            segment: settings.segment_size(size),
            card_free,
            own: empty,
            other_streams: (0, 0),
            other_kind: 0,
            other_pools: 0,
            pending: fragments.pools.iter().map(|row| row.pending).sum(),
            reason: Reason::Full,
        };
        for row in &fragments.pools {
            if (row.pool, row.large, row.stream) == (pool, large, stream) {
                found.own = *row;
            } else if (row.pool, row.large) == (pool, large) {
                found.other_streams.0 += row.free;
                found.other_streams.1 = found.other_streams.1.max(row.largest_free);
            } else if row.pool == pool {
                found.other_kind += row.free;
            } else {
                found.other_pools += row.free;
            }
        }
        let reserved = fragments.pools.iter().map(|row| row.reserved).sum();
        found.reason = found.reason(settings, reserved);
        found
    }

    /// The nearest cause first: what would have helped with the least change.
    fn reason(&self, settings: &Settings, reserved: u64) -> Reason {
        let usable = settings.memory.map(|total| total.saturating_sub(settings.context));
        let most = usable.into_iter().chain(settings.limit()).min();
        let card_free = self.card_free.unwrap_or(0);
        let all_free =
            self.own.free + self.other_streams.0 + self.other_kind + self.other_pools + card_free;
        if most.is_some_and(|most| most < self.size) {
            Reason::LargerThanCard
        } else if self.size <= self.own.free {
            Reason::Scattered
        } else if self.size <= self.other_streams.1 {
            Reason::OtherStream
        } else if self.size <= self.own.free + self.own.pending {
            Reason::Pending
        } else if settings.limit().is_some_and(|limit| limit < reserved + self.segment)
            && self.segment <= card_free
        {
            Reason::Limit
        } else if self.size <= all_free && card_free < all_free {
            self.shared_or_scattered(card_free)
        } else {
            Reason::Full
        }
    }

    /// Free blocks and the card's rest would do together: whose blocks they are decides.
    fn shared_or_scattered(&self, card_free: u64) -> Reason {
        if self.size <= self.own.free + card_free { Reason::Scattered } else { Reason::OtherPools }
    }
}
