//! What a snapshot says, in PyTorch's own words; all sizes in bytes.

use crate::tables::{StackId, StringId, Tables};

/// The contents of one snapshot file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The torch versions that write this form.
    pub form: Form,
    /// Segments of all devices, in file order (by device, then by address).
    pub segments: Vec<Segment>,
    /// Events by device index, oldest first; torch writes one list per visible device.
    pub device_traces: Vec<Vec<TraceEntry>>,
    /// Settings at the time of the snapshot; torch 2.3 and newer.
    pub settings: Option<AllocatorSettings>,
    /// Regions marked by the profiler, optimizers and compilers; torch 2.5 and newer.
    pub annotations: Option<Vec<Annotation>>,
    /// Segments of pinned host memory, counted and skipped; torch 2.14 and newer.
    pub host_segments: Option<u64>,
    /// Events of pinned host memory, counted and skipped; torch 2.14 and newer.
    pub host_events: Option<u64>,
    /// Events whose action this reader does not know.
    pub unknown_actions: u64,
    /// Strings, frames and stacks.
    pub tables: Tables,
}

/// How much a snapshot can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Neither segments nor events: no memory was in use and none was recorded.
    Nothing,
    /// Segments but no events: history was never enabled, or was cleared before the snapshot.
    NoHistory,
    /// Events were recorded.
    History,
}

impl Snapshot {
    /// How much there is to see.
    pub fn contents(&self) -> Contents {
        if self.event_count() > 0 {
            Contents::History
        } else if self.segments.is_empty() {
            Contents::Nothing
        } else {
            Contents::NoHistory
        }
    }

    /// Events of all devices.
    pub fn event_count(&self) -> usize {
        self.device_traces.iter().map(Vec::len).sum()
    }
}

/// The form of a file, told by its keys; named by the torch versions that write it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// A plain list of segments: torch 1.13, and `torch.cuda.memory_snapshot()` of any version.
    List,
    /// Blocks with `history`.
    V2_0,
    /// No `time_us`.
    V2_1,
    /// No `allocator_settings`.
    V2_2,
    /// No `external_annotations`.
    V2_3To2_4,
    /// No `compile_context`; also a file of a newer torch that holds no event.
    V2_5To2_7,
    /// No `graph_capture_record_stream_reuse`.
    V2_8,
    /// No `user_metadata`.
    V2_9,
    /// No `pool_id`.
    V2_10To2_11,
    /// No `max_round_threshold`.
    V2_12,
    /// No `host_segments`.
    V2_13,
    /// All of these.
    #[default]
    V2_14,
}

/// Memory that was obtained from the driver in one piece.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    pub device: u32,
    pub address: u64,
    pub total_size: u64,
    /// Bytes in blocks that are allocated.
    pub allocated_size: u64,
    /// Bytes in blocks that are allocated or wait for a stream.
    pub active_size: u64,
    /// Bytes asked for by active blocks; `None` before torch 2.0.
    pub requested_size: Option<u64>,
    /// Stream it belongs to (a pointer); 0 is the default stream.
    pub stream: u64,
    /// Pool of small or of large blocks.
    pub kind: SegmentKind,
    /// Private pool; `None` before torch 2.1, (0, 0) is the general pool.
    pub pool: Option<PoolId>,
    /// Whether it can grow (expandable segments).
    pub is_expandable: bool,
    /// Where it was created.
    pub stack: Option<StackId>,
    /// Its blocks by address; they tile the segment.
    pub blocks: Vec<Block>,
}

/// Whether a segment serves small (up to 1 MiB) or large requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SegmentKind {
    /// `small`
    Small,
    /// `large`
    #[default]
    Large,
}

/// A private pool's id, as torch writes it; (0, 0) is the general pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u32, pub u32);

/// A part of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First byte; before torch 2.1 the sum of the sizes before it.
    pub address: u64,
    pub size: u64,
    /// Bytes asked for; stale in a block that is not active. `None` before torch 2.0.
    pub requested_size: Option<u64>,
    /// In use, waiting, or free.
    pub state: BlockState,
    /// Where it was allocated.
    pub stack: Option<StackId>,
    /// Where the forward pass made the node that allocated it; torch 2.11 and newer.
    pub forward_stack: Option<StackId>,
}

/// Whether a block is in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlockState {
    /// `active_allocated`: in use.
    Allocated,
    /// `active_pending_free`: freed, but another stream may still use it.
    PendingFree,
    /// `inactive`: free.
    #[default]
    Inactive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEntry {
    pub action: Action,
    /// First byte of the block, segment or range; 0 for `oom` and `snapshot`.
    pub address: u64,
    /// Bytes: as asked for (alloc, free, annotate), of the segment or range, rounded (`oom`),
    /// or all that is active (`snapshot`).
    pub size: u64,
    /// Stream (a pointer); 0 is the default stream.
    pub stream: u64,
    /// Microseconds since 1970; 0 before torch 2.2.
    pub time_us: u64,
    /// Bytes the driver had free, for `oom`; else 0.
    pub device_free: u64,
    /// Where it happened; for frees this may be where the block was allocated.
    pub stack: Option<StackId>,
    /// Where the forward pass made the node; torch 2.11 and newer.
    pub forward_stack: Option<StackId>,
    /// Graph being compiled, `N/A` if none; torch 2.8 and newer.
    pub compile_context: Option<StringId>,
    /// Text set by the user; torch 2.10 and newer.
    pub user_metadata: Option<StringId>,
    /// Private pool; torch 2.12 and newer.
    pub pool: Option<PoolId>,
}

/// What an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A block was handed out.
    Alloc,
    /// The program freed a block.
    FreeRequested,
    /// The block went back to the pool.
    FreeCompleted,
    /// A segment was obtained from the driver.
    SegmentAlloc,
    /// A segment was given back.
    SegmentFree,
    /// An expandable segment grew.
    SegmentMap,
    /// An expandable segment shrank.
    SegmentUnmap,
    /// The request could not be served.
    Oom,
    /// A snapshot was taken.
    Snapshot,
    /// A live block was annotated.
    Annotate,
    /// An action this reader does not know, by its name.
    Other(StringId),
}

/// The settings a snapshot names; values at the time of the snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocatorSettings {
    /// The last string parsed (`PYTORCH_CUDA_ALLOC_CONF`); empty if none.
    pub conf: String,
    /// Bytes above which blocks are not split; -1 is unlimited.
    pub max_split_size: i64,
    /// Fraction of the allowed memory at which unused segments are given back; 0 is never.
    pub garbage_collection_threshold: f64,
    /// Whether new segments are expandable.
    pub expandable_segments: bool,
    /// Threads that register pinned memory.
    pub pinned_num_register_threads: i64,
    /// Whether the lock is released during cudaMalloc.
    pub release_lock_on_cudamalloc: bool,
    /// Whether pinned memory comes from cudaHostRegister.
    pub pinned_use_cuda_host_register: bool,
    /// Divisions between powers of two, by start of the interval in MiB; 0 is no rounding.
    pub roundup_power2_divisions: Vec<(u64, u64)>,
    /// torch 2.9 and newer.
    pub graph_capture_record_stream_reuse: Option<bool>,
    /// Bytes, pinned memory; -1 is unlimited; torch 2.13 and newer.
    pub max_round_threshold: Option<i64>,
    /// Bytes, pinned memory; -1 is unlimited; torch 2.13 and newer.
    pub max_cached_size: Option<i64>,
}

impl Default for AllocatorSettings {
    fn default() -> Self {
        Self {
            conf: String::new(),
            max_split_size: -1,
            garbage_collection_threshold: 0.0,
            expandable_segments: false,
            pinned_num_register_threads: 1,
            release_lock_on_cudamalloc: false,
            pinned_use_cuda_host_register: false,
            roundup_power2_divisions: (0..16).map(|power| (1 << power, 0)).collect(),
            graph_capture_record_stream_reuse: None,
            max_round_threshold: None,
            max_cached_size: None,
        }
    }
}

/// The start or end of a named region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Annotation {
    /// `START` or `END`.
    pub stage: StringId,
    /// Name of the region.
    pub name: StringId,
    pub device: u32,
    /// Microseconds since 1970.
    pub time_us: u64,
}
