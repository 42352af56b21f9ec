//! Segments and blocks at one moment, as PyTorch's memory snapshots list them.

use std::fmt;

/// What a block is at this moment; named as in PyTorch's snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockState {
    Allocated,
    /// Given back by its user, still used by a stream.
    PendingFree,
    /// In its pool's free list.
    Inactive,
}

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Start of the block.
    pub address: u64,
    pub size: u64,
    /// Bytes asked for; without meaning if inactive.
    pub requested: u64,
    /// Handed out or not.
    pub state: BlockState,
}

/// A piece of the card's memory: one `cudaMalloc`, or one mapped range of an expandable segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Start of the segment.
    pub address: u64,
    pub size: u64,
    /// The raw stream.
    pub stream: u64,
    /// Private pool, as (0, 0) for the default pool.
    pub pool: (u32, u32),
    /// Of the large pool, else of the small one.
    pub large: bool,
    /// A mapped range of an expandable segment.
    pub expandable: bool,
    /// In order of addresses, without gaps.
    pub blocks: Vec<Block>,
}

impl BlockState {
    /// The name in PyTorch's snapshots.
    pub fn name(self) -> &'static str {
        match self {
            BlockState::Allocated => "active_allocated",
            BlockState::PendingFree => "active_pending_free",
            BlockState::Inactive => "inactive",
        }
    }

    /// The state of a name.
    pub fn from_name(name: &str) -> Option<BlockState> {
        let all = [BlockState::Allocated, BlockState::PendingFree, BlockState::Inactive];
        all.into_iter().find(|state| state.name() == name)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Block { address, size, requested, state } = self;
        write!(to, "block {address:#x} {size} {} requested {requested}", state.name())
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.large { "large" } else { "small" };
        write!(to, "segment {:#x} {} {kind} stream {}", self.address, self.size, self.stream)?;
        if self.pool != (0, 0) {
            write!(to, " pool {}.{}", self.pool.0, self.pool.1)?;
        }
        if self.expandable {
            write!(to, " expandable")?;
        }
        self.blocks.iter().try_for_each(|block| write!(to, "\n{block}"))
    }
}
