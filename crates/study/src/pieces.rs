//! How memory lies in pieces where it ran out, else at the allocated peak: worked out for the report.

// What is read here may come from anyone.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::fragments::{CELLS, Cell, Fragments, Pool, SegmentMap};
use allocator::fragments::{self as pieces, PoolUse};
use allocator::{Reproduction, Settings};
use anatomy::Anatomy;
use recording::{BlockState, Recording, Segment};

use crate::shortage::shortage;

/// Pools and segments at the moment that is shown; `None` if the timeline does not come to it.
pub(crate) fn fragments(
    recording: &Recording,
    settings: &Settings,
    replayed: &Reproduction,
    anatomy: &Anatomy,
) -> Option<Fragments> {
    let refusal = anatomy.out_of_memory.as_ref();
    let shown = refusal.map_or(&anatomy.allocated_peak, |refusal| &refusal.at);
    let event = shown.time.checked_sub(1);
    let Reproduction { timeline, difference } = replayed;
    let differs = difference.as_ref().is_some_and(|it| event.is_some_and(|at| it.event <= at));
    let found = match event {
        Some(event) => pieces::after(recording, timeline, settings, event)?,
        None => pieces::Fragments::of(timeline.start.clone()),
    };
    // Why a request found no room is tried out on the replayed allocator.
    let event = event.filter(|_| refusal.is_some() && !differs);
    Some(Fragments {
        pools: found.pools.iter().map(pool_use).collect(),
        segments: maps(&found.segments),
        shortage: event.and_then(|event| shortage(recording, settings, &found, event)),
    })
}

/// A row, for the report.
pub(crate) fn pool_use(row: &PoolUse) -> crate::fragments::PoolUse {
    crate::fragments::PoolUse {
        pool: Pool { private: row.pool, large: row.large, stream: row.stream },
        segments: row.segments,
        reserved_bytes: row.reserved,
        allocated_bytes: row.allocated,
        waiting_bytes: row.pending,
        free_bytes: row.free,
        free_blocks: row.free_blocks,
        largest_free_bytes: row.largest_free,
        releasable_bytes: row.releasable,
    }
}

/// Every segment drawn, largest first.
fn maps(segments: &[Segment]) -> Vec<SegmentMap> {
    let mut order: Vec<&Segment> = segments.iter().collect();
    order.sort_by_key(|segment| (std::cmp::Reverse(segment.size), segment.address));
    order.into_iter().map(map).collect()
}

fn map(segment: &Segment) -> SegmentMap {
    let free = segment.blocks.iter().filter(|block| block.state == BlockState::Inactive);
    SegmentMap {
        pool: Pool { private: segment.pool, large: segment.large, stream: segment.stream },
        size_bytes: segment.size,
        largest_free_bytes: free.map(|block| block.size).max().unwrap_or(0),
        cells: cells(segment),
    }
}

/// What most of each cell is; of equal parts, what is in use counts first.
///
/// ```text
/// segment  |   used    |free|      used      |
/// cells    |       |       |       |         |
///            used    used     used     used
/// ```
fn cells(segment: &Segment) -> Vec<Cell> {
    let (size, count) = (u128::from(segment.size.max(1)), CELLS as u128);
    // Lengths are counted in parts of a byte, so that cells begin and end at whole numbers.
    let mut held = [[0u128; 3]; CELLS];
    for block in &segment.blocks {
        let start = u128::from(block.address.saturating_sub(segment.address)) * count;
        let end = (start + u128::from(block.size) * count).min(size * count);
        let mut at = start;
        while at < end {
            let cell = at / size;
            let next = end.min((cell + 1) * size);
            if let Some([used, waiting, free]) = held.get_mut(cell as usize) {
                let bytes = match block.state {
                    BlockState::Allocated => used,
                    BlockState::PendingFree => waiting,
                    BlockState::Inactive => free,
                };
                *bytes += next - at;
            }
            at = next;
        }
    }
    // What no block covers is nobody's.
    let most = |&[used, waiting, free]: &[u128; 3]| match used.max(waiting).max(free) {
        0 => Cell::Free,
        largest if largest == used => Cell::Used,
        largest if largest == waiting => Cell::Waiting,
        _ => Cell::Free,
    };
    held.iter().map(most).collect()
}

#[cfg(test)]
mod tests {
    use recording::Block;

    use super::*;

    fn segment(size: u64, blocks: &[(u64, BlockState)]) -> Segment {
        let mut address = 0x1000;
        let blocks = blocks.iter().map(|(size, state)| {
            let block = Block { address, size: *size, requested: *size, state: *state };
            address = address.saturating_add(*size);
            block
        });
        let blocks = blocks.collect();
        let (large, expandable) = (true, false);
        Segment { address: 0x1000, size, stream: 0, pool: (0, 0), large, expandable, blocks }
    }

    #[test]
    fn cells_show_what_most_of_them_holds() {
        use BlockState::{Allocated, Inactive, PendingFree};
        let drawn = cells(&segment(480, &[(241, Allocated), (119, PendingFree), (120, Inactive)]));
        let is = |cell: Cell| drawn.iter().filter(|one| **one == cell).count();
        assert_eq!((is(Cell::Used), is(Cell::Waiting), is(Cell::Free)), (24, 12, 12));
        assert_eq!(
            cells(&segment(3, &[(1, Allocated), (2, Inactive)]))[15..17],
            [Cell::Used, Cell::Free]
        );
    }

    #[test]
    fn numbers_that_cannot_be_are_drawn_anyhow() {
        let huge = u64::MAX;
        for (size, block) in [(0, huge), (huge, huge), (1, huge), (huge, 0), (0, 0)] {
            assert_eq!(cells(&segment(size, &[(block, BlockState::Allocated); 2])).len(), CELLS);
        }
    }

    #[test]
    fn the_largest_segment_comes_first() {
        let of = |size| segment(size, &[(size, BlockState::Inactive)]);
        let drawn = maps(&[of(2), of(30), of(7)]);
        let sizes: Vec<u64> = drawn.iter().map(|map| map.size_bytes).collect();
        assert_eq!((sizes, drawn[0].largest_free_bytes), (vec![30, 7, 2], 30));
    }
}
