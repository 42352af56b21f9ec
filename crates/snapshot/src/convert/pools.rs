//! Private pools of a trace that does not name them: before torch 2.12 only segments do.

use std::collections::BTreeMap;

use recording::Segment;

use crate::model::{Action, TraceEntry};

/// The pool of each entry; nothing at all if every pool is the default one.
///
/// What lies in a final segment of a private pool is of that pool, back to where the segment was
/// made. What was given back before the end cannot be known: it counts as of the default pool.
pub(super) fn pools(trace: &[TraceEntry], finish: &[Segment]) -> Vec<(u32, u32)> {
    let private = finish.iter().filter(|segment| segment.pool != (0, 0));
    let mut ranges: BTreeMap<u64, (u64, (u32, u32))> = private
        .map(|segment| {
            let end = segment.address.saturating_add(segment.size);
            (segment.address, (end, segment.pool))
        })
        .collect();
    if ranges.is_empty() {
        return Vec::new();
    }
    let mut pools = vec![(0, 0); trace.len()];
    for (entry, pool) in trace.iter().zip(&mut pools).rev() {
        let below = ranges.range(..=entry.address).next_back();
        *pool = match below {
            Some((_, (end, pool))) if entry.address < *end => *pool,
            _ => (0, 0),
        };
        if entry.action == Action::SegmentAlloc {
            ranges.remove(&entry.address);
        }
    }
    pools
}
