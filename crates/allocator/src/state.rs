//! The allocator's state as segments and blocks, and back.

use std::collections::HashMap;

use recording::{Block, BlockState, Segment};

use crate::allocator::{Allocator, Handle};
use crate::block::{NONE, Origin, State};
use crate::front::Fronts;
use crate::pool::ListId;
use crate::settings::{Settings, TieBreak};
use crate::source::SegmentSource;
use crate::stats::Stats;

/// Blocks in their users' hands, by address.
pub(crate) type Live = Vec<(u64, Handle)>;

impl<S: SegmentSource> Allocator<S> {
    /// Starts with these segments, as if made in order of their addresses; peaks begin here.
    pub(crate) fn with_state(settings: &Settings, source: S, segments: &[Segment]) -> (Self, Live) {
        Allocator::with_state_behind(settings, source, segments, &Fronts::new())
    }

    /// The same where expandable segments begin before what they have mapped.
    pub(crate) fn with_state_behind(
        settings: &Settings,
        source: S,
        segments: &[Segment],
        fronts: &Fronts,
    ) -> (Self, Live) {
        let mut allocator = Allocator::new(settings, source);
        let mut live = Vec::new();
        // The last block of the expandable segment that a list's ranges belong to so far.
        let mut growing: HashMap<ListId, u32> = HashMap::new();
        let mut sorted: Vec<&Segment> = segments.iter().collect();
        sorted.sort_by_key(|segment| segment.address);
        for segment in sorted {
            let list = allocator.pools.list(segment.pool, segment.large, segment.stream);
            let stats = &mut allocator.stats;
            stats.reserved_bytes.increase(segment.large, segment.size);
            if segment.expandable {
                let name = (segment.pool, segment.large, segment.stream);
                let front = fronts.get(&name).copied().unwrap_or(segment.address);
                allocator.add_range(segment, list, &mut growing, (&mut live, front));
            } else {
                stats.segment.increase(segment.large, 1);
                if settings.max_split_size <= segment.size {
                    Stats::oversize(&mut stats.oversize_segments, true);
                }
                let number = allocator.next_number();
                let origin = Origin { base: segment.address, number, expandable: false };
                allocator.add_chain(segment, list, (NONE, origin), &mut live);
            }
        }
        growing.into_values().for_each(|last| allocator.add_tail(last));
        (allocator, live)
    }

    /// A mapped range joins the expandable segment of its list, or begins one, at `front`.
    fn add_range(
        &mut self,
        segment: &Segment,
        list: ListId,
        growing: &mut HashMap<ListId, u32>,
        (live, front): (&mut Live, u64),
    ) {
        let end = segment.address + segment.size;
        let reserve = self.reserve_size(segment.large);
        let (last, origin) = match growing.get(&list).copied() {
            Some(last) if end - self.blocks[last].origin.base <= reserve => {
                let gap = self.add_gap(last, segment.address);
                (gap, self.part_of(last))
            }
            other => {
                other.into_iter().for_each(|last| self.add_tail(last));
                // Only the first segment of a list has a front.
                let is_first = other.is_none() && front < segment.address;
                let base = if is_first { front } else { segment.address };
                let origin = Origin { base, number: self.next_number(), expandable: true };
                let before = if is_first {
                    let gap = self.add_block(base, segment.address - base, list, origin);
                    self.blocks[gap].state = State::Unmapped;
                    self.pools.insert_unmapped(&self.blocks, gap);
                    gap
                } else {
                    NONE
                };
                (before, origin)
            }
        };
        let last = self.add_chain(segment, list, (last, origin), live);
        growing.insert(list, last);
    }

    /// The rest of the range an expandable segment reserves, behind its last block.
    fn add_tail(&mut self, last: u32) {
        let (list, base) = (self.blocks[last].list, self.blocks[last].origin.base);
        let reserve = self.reserve_size(self.pools[list].large);
        self.add_gap(last, base.saturating_add(reserve));
    }

    /// An unmapped block from the end of `last` up to an address; `last` itself if there is none.
    fn add_gap(&mut self, last: u32, until: u64) -> u32 {
        let (start, list) = {
            let block = &self.blocks[last];
            (block.address + block.size, block.list)
        };
        if until <= start {
            return last;
        }
        let origin = self.part_of(last);
        let gap = self.add_block(start, until - start, list, origin);
        self.blocks[gap].state = State::Unmapped;
        self.blocks.splice(last, gap, NONE);
        self.pools.insert_unmapped(&self.blocks, gap);
        gap
    }

    /// The blocks of a segment, after the block `last`; gives the last of them.
    fn add_chain(
        &mut self,
        segment: &Segment,
        list: ListId,
        (mut last, origin): (u32, Origin),
        live: &mut Live,
    ) -> u32 {
        let (large, split) = (segment.large, 1 < segment.blocks.len());
        for (index, block) in segment.blocks.iter().enumerate() {
            let counts_blocks = self.settings.tie_break == TieBreak::BlockCounter;
            let number =
                if 0 < index && counts_blocks { self.next_number() } else { origin.number };
            let id = self.add_block(block.address, block.size, list, Origin { number, ..origin });
            self.blocks[id].requested = block.requested;
            self.blocks.splice(last, id, NONE);
            last = id;
            if block.state == BlockState::Inactive {
                self.pools.insert(&mut self.blocks, id);
                if split && !origin.expandable {
                    self.stats.inactive_split.increase(large, 1);
                    self.stats.inactive_split_bytes.increase(large, block.size);
                }
                continue;
            }
            self.blocks[id].state = State::Allocated;
            self.stats.hand_out(large, block.size, block.requested);
            if self.is_oversize(block.size) {
                Stats::oversize(&mut self.stats.oversize_allocations, true);
            }
            let handle = self.handle(id);
            if block.state == BlockState::PendingFree {
                self.request_free(handle);
            }
            live.push((block.address, handle));
        }
        last
    }

    /// All segments with their blocks, in order of addresses: `snapshot`.
    pub fn segments(&self) -> Vec<Segment> {
        let mut heads: Vec<(u64, u32)> = self
            .blocks
            .iter()
            .filter(|(_, block)| block.state != State::Unmapped)
            .filter(|(_, block)| {
                block.prev == NONE || self.blocks[block.prev].state == State::Unmapped
            })
            .map(|(id, block)| (block.address, id))
            .collect();
        heads.sort_unstable();
        heads.into_iter().map(|(_, head)| self.segment(head)).collect()
    }

    fn segment(&self, head: u32) -> Segment {
        let first = &self.blocks[head];
        let list = &self.pools[first.list];
        let mut blocks = Vec::new();
        let mut at = head;
        while at != NONE && self.blocks[at].state != State::Unmapped {
            let block = &self.blocks[at];
            blocks.push(Block {
                address: block.address,
                size: block.size,
                requested: block.requested,
                state: match block.state {
                    State::Allocated => BlockState::Allocated,
                    State::Pending => BlockState::PendingFree,
                    State::Free | State::Unmapped => BlockState::Inactive,
                },
            });
            at = block.next;
        }
        Segment {
            address: first.address,
            size: blocks.iter().map(|block| block.size).sum(),
            stream: list.stream,
            pool: list.pool,
            large: list.large,
            expandable: first.origin.expandable,
            blocks,
        }
    }
}
