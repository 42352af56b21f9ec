//! How memory lies in pieces at one moment, and why a request found no room in it: data only.
//! `sections::fragments` draws it, `why` tells it in words.

/// Cells that a segment is drawn with.
pub const CELLS: usize = 48;

/// Segments and pools at the shown moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    /// One row for each pool, kind and stream: first the default pool, small before large.
    pub pools: Vec<PoolUse>,
    pub segments: Vec<SegmentMap>,
    /// Why the request of this moment failed, if one did.
    pub shortage: Option<Shortage>,
}

/// What the segments of one pool, kind and stream hold: nobody else can have their free blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUse {
    pub pool: Pool,
    /// Segments, or mapped ranges.
    pub segments: usize,
    pub reserved_bytes: u64,
    /// Of blocks handed out.
    pub allocated_bytes: u64,
    /// Of blocks given back that a stream still uses.
    pub waiting_bytes: u64,
    /// Of free blocks.
    pub free_bytes: u64,
    /// How many free blocks there are.
    pub free_blocks: usize,
    /// The largest of them.
    pub largest_free_bytes: u64,
    /// Of segments that are wholly free.
    pub releasable_bytes: u64,
}

/// A private pool or (0, 0), small or large, and the raw stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    pub private: (u32, u32),
    pub large: bool,
    pub stream: u64,
}

/// A segment, drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentMap {
    /// Whose it is.
    pub pool: Pool,
    pub size_bytes: u64,
    /// The largest free block in it.
    pub largest_free_bytes: u64,
    /// What most of each part of it holds, from its first byte on.
    pub cells: Vec<Cell>,
}

/// What most of a part of a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    Used,
    /// Given back, and a stream still uses it.
    Waiting,
    Free,
}

/// What a failed request comes down to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// It is larger than all that PyTorch may have.
    LargerThanCard,
    /// Free memory would add up to it, but lies in pieces.
    Scattered,
    /// A free block that would do is another stream's.
    OtherStream,
    /// Blocks that would do were given back, but streams still use them.
    Waiting,
    /// Free blocks that would do belong to other pools, kinds or streams.
    OtherPools,
    /// A limit was set; the card itself had room.
    Limit,
    /// Memory is in use.
    #[default]
    Full,
}

/// A request that was not met, beside what was free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// What it comes down to.
    pub cause: Cause,
    /// The request, rounded.
    pub request_bytes: u64,
    /// The segment that was asked of the card for it.
    pub segment_bytes: u64,
    /// What the card had left.
    pub card_free_bytes: u64,
    /// Its own pool, kind and stream.
    pub own: PoolUse,
    /// Free bytes of the same pool and kind on other streams.
    pub other_streams_free_bytes: u64,
    /// The largest of those blocks.
    pub other_streams_largest_bytes: u64,
    /// Free bytes of the other kind of the same pool: small blocks for a large request and so on.
    pub other_kind_free_bytes: u64,
    /// Free bytes of other pools.
    pub other_pools_free_bytes: u64,
    /// What would be missing even with all free memory, the card's too, in one piece.
    pub missing_bytes: u64,
    /// Allocator settings under which the same requests were replayed on the same card.
    pub trials: Vec<SettingsTrial>,
}

/// Settings, and whether the request that failed was met under them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsTrial {
    /// As in `PYTORCH_CUDA_ALLOC_CONF`; empty for the defaults.
    pub settings: String,
    /// Whether the replay met it.
    pub met: bool,
    /// Whether blocks older than the recording had to be laid out by a model.
    pub modelled: bool,
}

impl Cause {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Cause::LargerThanCard => "larger_than_card",
            Cause::Scattered => "scattered",
            Cause::OtherStream => "other_stream",
            Cause::Waiting => "waiting",
            Cause::OtherPools => "other_pools",
            Cause::Limit => "limit",
            Cause::Full => "full",
        }
    }
}

impl Shortage {
    /// The first settings under which a replay met the request.
    pub fn remedy(&self) -> Option<&SettingsTrial> {
        self.trials.iter().find(|trial| trial.met)
    }
}
