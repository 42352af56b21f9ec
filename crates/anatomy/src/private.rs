//! Private pools: segments that CUDA graphs, or who asks for a `MemPool`, have for themselves.

use std::collections::BTreeMap;

use allocator::Timeline;
use recording::Event;

use crate::anatomy::Private;

type Pool = (u32, u32);

/// What they hold after this many events. Of addresses only the start is compared: pages that are unmapped in parts count
/// as long as their start is there.
pub(crate) fn private(timeline: &Timeline, time: usize) -> Private {
    let mut segments: BTreeMap<u64, (Pool, u64)> = BTreeMap::new();
    for segment in &timeline.start {
        segments.insert(segment.address, (segment.pool, segment.size));
    }
    for next in timeline.segments.iter().take_while(|next| next.at < time) {
        match next.event {
            Event::SegmentAlloc { address, size, pool, .. }
            | Event::SegmentMap { address, size, pool, .. } => {
                segments.insert(address, (pool, size));
            }
            Event::SegmentFree { address, .. } | Event::SegmentUnmap { address, .. } => {
                segments.remove(&address);
            }
            _ => {}
        }
    }
    let mut pools: BTreeMap<Pool, u64> = BTreeMap::new();
    for (pool, size) in segments.into_values().filter(|(pool, _)| *pool != (0, 0)) {
        let sum = pools.entry(pool).or_default();
        *sum = sum.saturating_add(size);
    }
    Private { pools: pools.len() as u64, bytes: pools.into_values().fold(0, u64::saturating_add) }
}
