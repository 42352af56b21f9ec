//! Running out of memory, and what PyTorch says then.

use crate::allocator::{Allocator, Request};
use crate::block::State;
use crate::settings::{Settings, UNLIMITED, Version};
use crate::source::SegmentSource;

/// A request that could not be met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Rounded bytes of the request, as the trace's `oom` event has them.
    pub size: u64,
    /// Bytes of the segment that was asked for, as the text has them.
    pub segment: u64,
    /// What the card had left; `None` if it is unlimited.
    pub free: Option<u64>,
    /// The largest free block of the request's pool and stream.
    pub largest_free: u64,
    /// The text of the exception.
    pub text: String,
}

/// What the text is made of.
struct Facts {
    segment: u64,
    total: u64,
    free: u64,
    limit: Option<u64>,
    allocated: u64,
    reserved: u64,
    in_private_pools: u64,
}

impl<S: SegmentSource> Allocator<S> {
    /// The outcome of a request at this moment.
    pub(crate) fn out_of_memory(&self, request: &Request, rejected: bool) -> OutOfMemory {
        let free = self.source.free_bytes();
        let facts = Facts {
            segment: request.segment,
            total: self.settings.memory.unwrap_or(0),
            free: free.unwrap_or(0),
            limit: self.limit,
            allocated: self.stats.allocated_bytes.all.current,
            reserved: self.reserved(),
            in_private_pools: self.allocated_in_private_pools(),
        };
        let text = if rejected {
            format!(
                "CUDA out of memory. Allocation was preemptively rejected because it would exceed \
                 per_process_memory_fraction limit. Requested size: {}",
                format_size(request.segment)
            )
        } else {
            text(&self.settings, &facts)
        };
        let largest = self.pools[request.list].below(UNLIMITED).next();
        let largest_free = largest.map_or(0, |id| self.blocks[id].size);
        OutOfMemory { size: request.size, segment: request.segment, free, largest_free, text }
    }

    /// Requests of 2^60 bytes and more are not even tried.
    pub(crate) fn beyond_an_exabyte(&self, size: u64) -> OutOfMemory {
        let text = "CUDA out of memory. Tried to allocate more than 1EB memory.".to_owned();
        let free = self.source.free_bytes();
        OutOfMemory { size, segment: size, free, largest_free: 0, text }
    }

    fn allocated_in_private_pools(&self) -> u64 {
        let private = self.blocks.iter().filter(|(_, block)| {
            block.state == State::Allocated && self.pools[block.list].pool != (0, 0)
        });
        private.map(|(_, block)| block.size).sum()
    }
}

/// The message of `DeviceCachingAllocator::malloc`, as of 2.2; memory of other processes, which
/// NVML would add, is left out.
fn text(settings: &Settings, facts: &Facts) -> String {
    let Facts { segment, total, free, limit, allocated, reserved, in_private_pools } = *facts;
    let in_use = format_size(total.saturating_sub(free));
    let allowed = limit.map_or(String::new(), |limit| format!("{} allowed; ", format_size(limit)));
    let private = match in_private_pools {
        0 => String::new(),
        bytes => {
            format!("with {} allocated in private pools (e.g., CUDA Graphs), ", format_size(bytes))
        }
    };
    let taken = allocated + in_private_pools;
    format!(
        "CUDA out of memory. Tried to allocate {}. GPU 0 has a total capacity of {} of which {} is \
         free. Including non-PyTorch memory, this process has {in_use} memory in use. {allowed}Of the \
         allocated memory {} is allocated by PyTorch, {private}and {} is reserved by PyTorch but \
         unallocated. If reserved but unallocated memory is large try setting \
         PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory \
         Management  ({})",
        format_size(segment),
        format_size(total),
        format_size(free),
        format_size(taken),
        format_size(reserved.saturating_sub(taken)),
        page(settings.version),
    )
}

/// The page the text names.
fn page(version: Version) -> &'static str {
    if version < (2, 10) {
        "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables"
    } else {
        "https://docs.pytorch.org/docs/stable/notes/cuda.html\
         #optimizing-memory-usage-with-pytorch-cuda-alloc-conf"
    }
}

/// `format_size`: two digits after the point above 1024 bytes.
fn format_size(bytes: u64) -> String {
    let in_units = |unit: u64| bytes as f64 / unit as f64;
    if bytes <= 1 << 10 {
        format!("{bytes} bytes")
    } else if bytes <= 1 << 20 {
        format!("{:.2} KiB", in_units(1 << 10))
    } else if bytes <= 1 << 30 {
        format!("{:.2} MiB", in_units(1 << 20))
    } else {
        format!("{:.2} GiB", in_units(1 << 30))
    }
}
