//! The keys and constants that snapshots consist of: one row each.

macro_rules! words {
    ($($name:ident = $text:literal,)*) => {
        /// A key or constant of a snapshot.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Word {
            $($name,)*
            /// Any other string.
            Other,
        }

        impl Word {
            /// Number of words, `Other` included.
            pub(crate) const COUNT: usize = Word::Other as usize + 1;

            pub(crate) fn of(text: &[u8]) -> Self {
                match std::str::from_utf8(text) {
                    $(Ok($text) => Word::$name,)*
                    _ => Word::Other,
                }
            }

            /// From 1 on, for tables in which 0 is nothing.
            pub(crate) fn number(self) -> u8 {
                self as u8 + 1
            }

            /// The word of a number; `None` for 0.
            #[inline]
            pub(crate) fn at(number: u8) -> Option<Self> {
                const ALL: [Word; Word::COUNT] = [$(Word::$name,)* Word::Other];
                ALL.get(usize::from(number).wrapping_sub(1)).copied()
            }

            /// As it stands in the file.
            pub(crate) fn text(self) -> &'static str {
                match self {
                    $(Word::$name => $text,)*
                    Word::Other => "",
                }
            }
        }
    };
}

words! {
    // The top.
    Segments = "segments",
    DeviceTraces = "device_traces",
    AllocatorSettings = "allocator_settings",
    ExternalAnnotations = "external_annotations",
    HostSegments = "host_segments",
    HostTraces = "host_traces",
    // Segments.
    Device = "device",
    Address = "address",
    TotalSize = "total_size",
    AllocatedSize = "allocated_size",
    ActiveSize = "active_size",
    RequestedSize = "requested_size",
    Stream = "stream",
    SegmentType = "segment_type",
    SegmentPoolId = "segment_pool_id",
    IsExpandable = "is_expandable",
    Frames = "frames",
    Blocks = "blocks",
    Small = "small",
    Large = "large",
    // Blocks.
    Size = "size",
    State = "state",
    ForwardFrames = "forward_frames",
    History = "history",
    RealSize = "real_size",
    ActiveAllocated = "active_allocated",
    ActivePendingFree = "active_pending_free",
    ActiveAwaitingFree = "active_awaiting_free",
    Inactive = "inactive",
    // Frames.
    Name = "name",
    Filename = "filename",
    Line = "line",
    // Events.
    Action = "action",
    Addr = "addr",
    DeviceFree = "device_free",
    TimeUs = "time_us",
    CompileContext = "compile_context",
    UserMetadata = "user_metadata",
    PoolId = "pool_id",
    Alloc = "alloc",
    FreeRequested = "free_requested",
    FreeCompleted = "free_completed",
    SegmentAlloc = "segment_alloc",
    SegmentFree = "segment_free",
    SegmentMap = "segment_map",
    SegmentUnmap = "segment_unmap",
    Oom = "oom",
    Snapshot = "snapshot",
    Annotate = "annotate",
    // Annotations.
    Stage = "stage",
    // Settings.
    Conf = "PYTORCH_CUDA_ALLOC_CONF",
    MaxSplitSize = "max_split_size",
    GarbageCollectionThreshold = "garbage_collection_threshold",
    ExpandableSegments = "expandable_segments",
    PinnedNumRegisterThreads = "pinned_num_register_threads",
    ReleaseLockOnCudamalloc = "release_lock_on_cudamalloc",
    PinnedUseCudaHostRegister = "pinned_use_cuda_host_register",
    RoundupPower2Divisions = "roundup_power2_divisions",
    GraphCaptureRecordStreamReuse = "graph_capture_record_stream_reuse",
    MaxRoundThreshold = "max_round_threshold",
    MaxCachedSize = "max_cached_size",
}
