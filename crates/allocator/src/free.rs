//! Giving blocks back: first by their user, then to their pool, where free neighbours are joined.

use crate::allocator::{Allocator, Handle};
use crate::block::{Block, NONE, State};
use crate::source::SegmentSource;
use crate::stats::Stats;

impl<S: SegmentSource> Allocator<S> {
    /// `free`: the user gives the block back; `complete_free` follows once no stream uses it.
    pub fn request_free(&mut self, handle: Handle) {
        let block = &mut self.blocks[handle.block];
        if block.generation != handle.generation || block.state != State::Allocated {
            return;
        }
        block.state = State::Pending;
        self.pending += 1;
        let (size, list) = (block.size, block.list);
        self.stats.request_free(self.pools[list].large, size);
        if self.is_oversize(size) {
            Stats::oversize(&mut self.stats.oversize_allocations, false);
        }
    }

    /// `free_block`: back to its pool, joined with its free neighbours. Does nothing if emptying the
    /// cache did it before.
    pub fn complete_free(&mut self, handle: Handle) {
        if !self.is_current(handle) {
            return;
        }
        if self.blocks[handle.block].state == State::Allocated {
            self.request_free(handle);
        }
        if self.blocks[handle.block].state == State::Pending {
            self.free_block(handle.block);
        }
    }

    pub(crate) fn free_block(&mut self, id: u32) {
        self.pending -= 1;
        let Block { size, requested, list, prev, next, origin, .. } = self.blocks[id];
        let large = self.pools[list].large;
        // Handles of this use end here; the place may be handed out again by itself.
        let block = &mut self.blocks[id];
        block.generation = block.generation.wrapping_add(1);
        block.state = State::Free;
        let (mut count, mut bytes) = (0, 0);
        for neighbour in [prev, next] {
            let subsumed = self.merge(id, neighbour);
            if 0 < subsumed {
                count -= 1;
                bytes -= subsumed as i64;
            }
        }
        self.pools.insert(&mut self.blocks, id);
        if self.blocks[id].is_split() {
            count += 1;
            bytes += self.blocks[id].size as i64;
        }
        if !origin.expandable {
            self.stats.inactive_split.change(large, count);
            self.stats.inactive_split_bytes.change(large, bytes);
        }
        self.stats.complete_free(large, size, requested);
    }

    /// `try_merge_blocks`: bytes of the neighbour that `into` swallowed, 0 if it could not.
    pub(crate) fn merge(&mut self, into: u32, neighbour: u32) -> u64 {
        if neighbour == NONE || self.blocks[neighbour].state != self.blocks[into].state {
            return 0;
        }
        let size = self.blocks[neighbour].size;
        match self.blocks[neighbour].state {
            State::Free => self.pools.remove(&self.blocks, neighbour),
            State::Unmapped => self.pools.remove_unmapped(&self.blocks, neighbour),
            State::Allocated | State::Pending => return 0,
        }
        self.blocks.absorb(into, neighbour);
        size
    }
}
