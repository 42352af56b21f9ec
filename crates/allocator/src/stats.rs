//! Statistics, counted as PyTorch's `memory_stats` counts them.

/// `Stat`: one quantity over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    pub current: u64,
    /// The greatest so far.
    pub peak: u64,
    /// Sum of all increases.
    pub allocated: u64,
    /// Sum of all decreases.
    pub freed: u64,
}

impl Stat {
    #[inline]
    fn increase(&mut self, amount: u64) {
        self.current += amount;
        self.peak = self.peak.max(self.current);
        self.allocated += amount;
    }

    #[inline]
    fn decrease(&mut self, amount: u64) {
        self.current -= amount;
        self.freed += amount;
    }
}

/// `StatArray`: a quantity of both pools together and of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStat {
    pub all: Stat,
    /// The small pools.
    pub small: Stat,
    /// The large pools.
    pub large: Stat,
}

impl PoolStat {
    /// Adds to one pool and to the sum.
    #[inline]
    pub(crate) fn increase(&mut self, large: bool, amount: u64) {
        self.all.increase(amount);
        if large { self.large.increase(amount) } else { self.small.increase(amount) }
    }

    /// Takes from one pool and from the sum.
    #[inline]
    pub(crate) fn decrease(&mut self, large: bool, amount: u64) {
        self.all.decrease(amount);
        if large { self.large.decrease(amount) } else { self.small.decrease(amount) }
    }

    /// An increase or a decrease; nothing for 0.
    #[inline]
    pub(crate) fn change(&mut self, large: bool, amount: i64) {
        match amount {
            1.. => self.increase(large, amount as u64),
            0 => {}
            _ => self.decrease(large, amount.unsigned_abs()),
        }
    }
}

/// `DeviceStats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Blocks handed out.
    pub allocation: PoolStat,
    /// Their bytes, as blocks: `memory_allocated`.
    pub allocated_bytes: PoolStat,
    /// Blocks handed out or still used by a stream.
    pub active: PoolStat,
    /// Their bytes, as blocks.
    pub active_bytes: PoolStat,
    /// Their bytes, as asked for.
    pub requested_bytes: PoolStat,
    /// Segments of `cudaMalloc`; expandable ones do not count.
    pub segment: PoolStat,
    /// Bytes of all segments and pages: `memory_reserved`.
    pub reserved_bytes: PoolStat,
    /// Free blocks of segments in use; expandable ones do not count.
    pub inactive_split: PoolStat,
    pub inactive_split_bytes: PoolStat,
    /// Blocks too large to be split.
    pub oversize_allocations: Stat,
    /// Segments too large to be split.
    pub oversize_segments: Stat,
    /// Requests tried again after the cache was emptied.
    pub num_alloc_retries: u64,
    /// Requests that failed.
    pub num_ooms: u64,
    /// Requests refused before anything was tried; since 2.12.
    pub num_oom_rejections: u64,
    /// Times all streams were waited for.
    pub num_sync_all_streams: u64,
    /// `cudaMalloc` calls and mappings that succeeded.
    pub num_device_alloc: u64,
    /// `cudaFree` calls and unmappings.
    pub num_device_free: u64,
}

impl Stats {
    /// A block was handed out.
    #[inline]
    pub(crate) fn hand_out(&mut self, large: bool, block: u64, requested: u64) {
        self.allocation.increase(large, 1);
        self.allocated_bytes.increase(large, block);
        self.active.increase(large, 1);
        self.active_bytes.increase(large, block);
        self.requested_bytes.increase(large, requested);
    }

    /// A block was given back by its user.
    #[inline]
    pub(crate) fn request_free(&mut self, large: bool, block: u64) {
        self.allocation.decrease(large, 1);
        self.allocated_bytes.decrease(large, block);
    }

    /// A block went back to its pool.
    #[inline]
    pub(crate) fn complete_free(&mut self, large: bool, block: u64, requested: u64) {
        self.active.decrease(large, 1);
        self.active_bytes.decrease(large, block);
        self.requested_bytes.decrease(large, requested);
    }

    /// A block or segment too large to be split came or went. One that goes may have come when the
    /// settings were others.
    pub(crate) fn oversize(stat: &mut Stat, came: bool) {
        if came { stat.increase(1) } else { stat.decrease(stat.current.min(1)) }
    }
}
