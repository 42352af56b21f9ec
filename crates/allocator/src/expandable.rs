//! Expandable segments, since 2.1: one reserved range of addresses per pool and stream, into which
//! pages are mapped when a request does not fit and from which free pages are unmapped.
//!
//! ```text
//! base                                               base + reserve
//! | block | free | block |  free tail  |   unmapped        |
//! |  page     |  page     |  page      |
//! ```

use recording::Event;

use crate::allocator::{Allocator, Request};
use crate::block::{Block, NONE, Origin, State};
use crate::source::SegmentSource;

/// Addresses reserved per segment when the card is unlimited.
const ENDLESS_RESERVE: u64 = 1 << 44;

impl<S: SegmentSource> Allocator<S> {
    /// `ExpandableSegment`: bytes of addresses one segment reserves.
    pub(crate) fn reserve_size(&self, large: bool) -> u64 {
        let page = self.settings.page(large);
        let total = self.settings.memory.map(|total| total.min(1 << 60));
        let bytes = total.map_or(ENDLESS_RESERVE, |total| total + total / 8);
        bytes.next_multiple_of(page)
    }

    /// `try_allocate_expandable_block`: maps what a request lacks. Pages that were mapped before a
    /// failure stay.
    pub(crate) fn expand(&mut self, request: &Request) -> Option<u32> {
        let mut found = self.find_expandable(request)?;
        if self.blocks[found].state == State::Unmapped {
            let size = self.blocks[found].size.min(request.size);
            self.map(found, size).then_some(())?;
        }
        while self.blocks[found].size < request.size {
            let next = self.blocks[found].next;
            let missing = request.size - self.blocks[found].size;
            let size = missing.min(self.blocks[next].size);
            self.map(next, size).then_some(())?;
            found = next;
        }
        self.pools.remove(&self.blocks, found);
        Some(found)
    }

    /// `find_expandable_block`: the first run of free and unmapped blocks that is long enough, else a
    /// new segment.
    fn find_expandable(&mut self, request: &Request) -> Option<u32> {
        for unmapped in self.pools[request.list].unmapped.values() {
            let prev = self.blocks[*unmapped].prev;
            let start = if self.is_usable(prev) { prev } else { *unmapped };
            if self.has_room(start, request.size) {
                return Some(start);
            }
        }
        let large = self.pools[request.list].large;
        let size = self.reserve_size(large);
        if size < request.size {
            return None;
        }
        let base = self.source.reserve(size)?;
        let origin = Origin { base, number: self.next_number(), expandable: true };
        let id = self.add_block(base, size, request.list, origin);
        self.blocks[id].state = State::Unmapped;
        self.pools.insert_unmapped(&self.blocks, id);
        Some(id)
    }

    fn is_usable(&self, id: u32) -> bool {
        id != NONE && matches!(self.blocks[id].state, State::Free | State::Unmapped)
    }

    fn has_room(&self, start: u32, size: u64) -> bool {
        let (mut at, mut bytes) = (start, 0);
        while bytes < size && self.is_usable(at) {
            bytes += self.blocks[at].size;
            at = self.blocks[at].next;
        }
        size <= bytes
    }

    /// `map_block`: memory for the first `size` bytes of an unmapped block, in whole pages.
    fn map(&mut self, id: u32, size: u64) -> bool {
        let Block { address, list, next, size: unmapped, .. } = self.blocks[id];
        let (pool, stream, large) =
            (self.pools[list].pool, self.pools[list].stream, self.pools[list].large);
        let size = size.next_multiple_of(self.settings.page(large));
        if !self.source.map(address, size, stream, pool) {
            return false;
        }
        self.pools.remove_unmapped(&self.blocks, id);
        self.blocks[id].state = State::Free;
        if size < unmapped {
            let part = self.part_of(id);
            let rest = self.add_block(address + size, unmapped - size, list, part);
            self.blocks[rest].state = State::Unmapped;
            self.blocks.splice(id, rest, next);
            self.pools.insert_unmapped(&self.blocks, rest);
            self.blocks[id].size = size;
        }
        let (prev, next) = (self.blocks[id].prev, self.blocks[id].next);
        self.merge(id, prev);
        self.merge(id, next);
        self.pools.insert(&mut self.blocks, id);
        self.stats.reserved_bytes.increase(large, size);
        self.stats.num_device_alloc += 1;
        self.events.push(Event::SegmentMap { address, size, stream, pool });
        true
    }

    /// `unmap_block` of a free block: its whole pages go, what is before and after them stays free.
    /// A segment without any page left is given up (`release_expandable_segment`).
    pub(crate) fn unmap(&mut self, id: u32) {
        let Block { address: start, size, list, prev, next, origin, .. } = self.blocks[id];
        let (pool, stream, large) =
            (self.pools[list].pool, self.pools[list].stream, self.pools[list].large);
        let (page, base) = (self.settings.page(large), origin.base);
        let first = base + (start - base).next_multiple_of(page);
        let end = base + (start + size - base) / page * page;
        if end <= first {
            return;
        }
        self.pools.remove(&self.blocks, id);
        let parts = [(start, first, prev, id), (end, start + size, id, next)];
        for (from, to, before, after) in parts {
            if from < to {
                let part = self.part_of(id);
                let part = self.add_block(from, to - from, list, part);
                self.blocks.splice(before, part, after);
                self.pools.insert(&mut self.blocks, part);
            }
        }
        self.blocks[id].address = first;
        self.blocks[id].size = end - first;
        self.blocks[id].state = State::Unmapped;
        let (prev, next) = (self.blocks[id].prev, self.blocks[id].next);
        self.merge(id, prev);
        self.merge(id, next);
        self.pools.insert_unmapped(&self.blocks, id);
        self.stats.reserved_bytes.decrease(large, end - first);
        self.stats.num_device_free += 1;
        let event = Event::SegmentUnmap { address: first, size: end - first, stream, pool };
        self.source.give_back(&event);
        self.events.push(event);
        if !self.blocks[id].is_split() {
            self.pools.remove_unmapped(&self.blocks, id);
            self.blocks.remove(id);
        }
    }
}
