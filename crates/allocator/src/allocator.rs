//! The allocator as a state machine: `malloc`, free in two steps, and what leads a request to its
//! block. Mirrors `DeviceCachingAllocator`, read from 1.13 to 2.15.

use recording::Event;

use crate::block::{Arena, Block, NONE, Origin, State};
use crate::oom::OutOfMemory;
use crate::pool::{ListId, PoolId, Pools};
use crate::settings::{MIN_BLOCK, SMALL_SIZE, Settings, TieBreak, UNLIMITED};
use crate::source::SegmentSource;
use crate::stats::Stats;

/// A block in its user's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    pub(crate) block: u32,
    pub(crate) generation: u32,
}

/// A request on its way: `AllocParams`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) size: u64,
    /// Bytes of a new segment.
    pub(crate) segment: u64,
    /// Pool and stream.
    pub(crate) list: ListId,
}

/// One card's memory as PyTorch keeps it.
#[derive(Clone, Debug)]
pub struct Allocator<S> {
    pub(crate) settings: Settings,
    pub source: S,
    /// Statistics so far.
    pub stats: Stats,
    /// Segment events since the caller last took them, in order.
    pub events: Vec<Event>,
    pub(crate) blocks: Arena,
    pub(crate) pools: Pools,
    pub(crate) limit: Option<u64>,
    pub(crate) freeable: Vec<PoolId>,
    /// Blocks given back and still used by a stream.
    pub(crate) pending: u64,
    collects_garbage: bool,
    counter: u64,
}

impl<S: SegmentSource> Allocator<S> {
    /// Nothing reserved yet.
    pub fn new(settings: &Settings, source: S) -> Allocator<S> {
        Allocator {
            source,
            stats: Stats::default(),
            events: Vec::new(),
            blocks: Arena::default(),
            pools: Pools::new(settings.tie_break),
            limit: settings.limit(),
            freeable: Vec::new(),
            pending: 0,
            collects_garbage: settings.collects_garbage(),
            counter: 0,
            settings: settings.clone(),
        }
    }

    /// Other settings from now on: `_set_allocator_settings`, `set_per_process_memory_fraction`. The
    /// version stays.
    pub fn set(&mut self, settings: &Settings) {
        assert_eq!(self.settings.version, settings.version, "a process has one version of torch");
        self.settings = settings.clone();
        self.limit = settings.limit();
        self.collects_garbage = settings.collects_garbage();
    }

    /// `malloc`, since 1.13: the order of attempts until a request has its block.
    pub fn malloc(
        &mut self,
        requested: u64,
        stream: u64,
        pool: PoolId,
    ) -> Result<Handle, OutOfMemory> {
        if 1 << 60 <= requested {
            return Err(self.beyond_an_exabyte(requested));
        }
        let size = self.settings.round(requested);
        let list = self.pools.list(pool, SMALL_SIZE < size, stream);
        let segment = self.settings.segment_size(size);
        let request = Request { size, segment, list };
        let found = match self.search(&request) {
            Some(found) => found,
            None => self.make_room(&request, pool)?,
        };
        Ok(self.hand_out(found, &request, requested))
    }

    /// What `malloc` does when no free block fits.
    #[cold]
    fn make_room(&mut self, request: &Request, pool: PoolId) -> Result<u32, OutOfMemory> {
        if self.collects_garbage {
            self.collect_garbage();
        }
        if self.rejects(request) {
            self.stats.num_oom_rejections += 1;
            return Err(self.out_of_memory(request, true));
        }
        let mut made = self.grow(request);
        if made.is_none() && self.release_available(request) {
            made = self.grow(request);
        }
        if made.is_none() && self.settings.retries(pool) {
            self.release_cached();
            self.stats.num_alloc_retries += 1;
            made = self.grow(request);
        }
        if made.is_none() {
            self.stats.num_ooms += 1;
        }
        made.ok_or_else(|| self.out_of_memory(request, false))
    }

    /// `throw_on_cudamalloc_oom`, since 2.12.
    fn rejects(&self, request: &Request) -> bool {
        let Some(total) = self.settings.memory else { return false };
        let share = self.settings.memory_fraction.unwrap_or(1.0);
        self.settings.throw_on_cudamalloc_oom
            && ((share * total as f64) as u64) < self.reserved() + request.segment
    }

    /// Bytes of all segments and pages: `total_allocated_memory`.
    pub(crate) fn reserved(&self) -> u64 {
        self.stats.reserved_bytes.all.current
    }

    /// `get_free_block`: the best fit of the request's stream, or nothing.
    fn search(&mut self, request: &Request) -> Option<u32> {
        if self.collects_garbage {
            self.pools.count_search(request.list);
        }
        let found = self.acceptable(request)?;
        self.pools.remove(&self.blocks, found);
        Some(found)
    }

    /// The best fit, if the rules for oversize blocks allow it.
    fn acceptable(&self, request: &Request) -> Option<u32> {
        let found = self.best_fit(request)?;
        let (size, split) = (self.blocks[found].size, self.settings.max_split_size);
        if request.size < split && split <= size {
            return None;
        }
        if split <= request.size && request.size + self.settings.max_non_split_rounding <= size {
            return None;
        }
        Some(found)
    }

    /// The block `get_free_block` looks at. Growing tails are passed over, since 2.1.
    fn best_fit(&self, request: &Request) -> Option<u32> {
        let mut fitting = self.pools[request.list].at_least(request.size);
        let mut found = fitting.next()?;
        if !self.blocks[found].origin.expandable {
            return Some(found);
        }
        if !self.settings.expandable_segments {
            return fitting.find(|id| !self.blocks[*id].origin.expandable);
        }
        for next in fitting {
            if !self.blocks[found].origin.expandable || self.reach(found) <= self.reach(next) {
                break;
            }
            found = next;
        }
        Some(found)
    }

    /// What a block could grow to.
    fn reach(&self, id: u32) -> u64 {
        let block = &self.blocks[id];
        match block.next {
            NONE => block.size,
            next if self.blocks[next].state == State::Unmapped => {
                block.size + self.blocks[next].size
            }
            _ => block.size,
        }
    }

    /// Would a request of this rounded size find a free block? Changes nothing.
    pub(crate) fn would_find(&mut self, size: u64, stream: u64, pool: PoolId) -> bool {
        let list = self.pools.list(pool, SMALL_SIZE < size, stream);
        self.acceptable(&Request { size, segment: 0, list }).is_some()
    }

    /// `alloc_block`: a new segment, or more pages of one.
    fn grow(&mut self, request: &Request) -> Option<u32> {
        let (pool, stream, large) = {
            let list = &self.pools[request.list];
            (list.pool, list.stream, list.large)
        };
        if self.limit.is_some_and(|limit| limit < self.reserved() + request.segment) {
            return None;
        }
        if self.settings.expands(pool) {
            return self.expand(request);
        }
        let size = request.segment;
        let address = self.source.allocate(size, stream, pool)?;
        self.stats.segment.increase(large, 1);
        self.stats.reserved_bytes.increase(large, size);
        self.stats.num_device_alloc += 1;
        if self.settings.max_split_size <= size {
            Stats::oversize(&mut self.stats.oversize_segments, true);
        }
        self.events.push(Event::SegmentAlloc { address, size, stream, pool });
        let origin = Origin { base: address, number: self.next_number(), expandable: false };
        Some(self.add_block(address, size, request.list, origin))
    }

    /// A new block, in no chain and no list.
    pub(crate) fn add_block(
        &mut self,
        address: u64,
        size: u64,
        list: ListId,
        origin: Origin,
    ) -> u32 {
        self.blocks.add(Block {
            address,
            size,
            requested: 0,
            inserted: 0,
            prev: NONE,
            next: NONE,
            list,
            generation: 0,
            state: State::Free,
            origin,
        })
    }

    /// The number of a new segment, or of a new block where blocks are counted.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.counter += 1;
        self.counter - 1
    }

    /// The origin of a block that is cut from another.
    #[inline]
    pub(crate) fn part_of(&mut self, whole: u32) -> Origin {
        let origin = self.blocks[whole].origin;
        match self.settings.tie_break {
            TieBreak::BlockCounter => Origin { number: self.next_number(), ..origin },
            TieBreak::Address | TieBreak::SegmentCounter => origin,
        }
    }

    /// `should_split`.
    #[inline]
    fn splits(&self, remaining: u64, request: &Request, large: bool) -> bool {
        if !large || self.settings.expandable_segments {
            MIN_BLOCK <= remaining
        } else {
            request.size < self.settings.max_split_size && SMALL_SIZE < remaining
        }
    }

    /// `alloc_found_block`: the front of the block is handed out, the rest stays free.
    fn hand_out(&mut self, found: u32, request: &Request, requested: u64) -> Handle {
        let Block { address, size, prev, origin, list, .. } = self.blocks[found];
        let large = self.pools[list].large;
        let (was_split, counts) = (self.blocks[found].is_split(), !origin.expandable);
        let remaining = size - request.size;
        let block = if self.splits(remaining, request, large) {
            let part = self.part_of(found);
            let front = self.add_block(address, request.size, list, part);
            self.blocks.splice(prev, front, found);
            self.blocks[found].address += request.size;
            self.blocks[found].size = remaining;
            self.pools.insert(&mut self.blocks, found);
            if counts && was_split {
                self.stats.inactive_split_bytes.decrease(large, request.size);
            } else if counts {
                self.stats.inactive_split_bytes.increase(large, remaining);
                self.stats.inactive_split.increase(large, 1);
            }
            front
        } else {
            if counts && was_split {
                self.stats.inactive_split_bytes.decrease(large, size);
                self.stats.inactive_split.decrease(large, 1);
            }
            found
        };
        let handed = &mut self.blocks[block];
        handed.state = State::Allocated;
        handed.requested = requested;
        let size = handed.size;
        let generation = handed.generation;
        self.stats.hand_out(large, size, requested);
        if self.is_oversize(size) {
            Stats::oversize(&mut self.stats.oversize_allocations, true);
        }
        Handle { block, generation }
    }

    #[inline]
    pub(crate) fn is_oversize(&self, size: u64) -> bool {
        self.settings.max_split_size != UNLIMITED && self.settings.max_split_size <= size
    }

    /// Address and size of a block in its user's hands.
    #[inline]
    pub fn block(&self, handle: Handle) -> (u64, u64) {
        let block = &self.blocks[handle.block];
        (block.address, block.size)
    }

    /// A handle for a block that was there at the beginning.
    pub(crate) fn handle(&self, block: u32) -> Handle {
        Handle { block, generation: self.blocks[block].generation }
    }

    /// Was the block given back, and is a stream still using it?
    pub fn is_pending(&self, handle: Handle) -> bool {
        self.is_current(handle) && self.blocks[handle.block].state == State::Pending
    }

    pub(crate) fn is_current(&self, handle: Handle) -> bool {
        self.blocks[handle.block].generation == handle.generation
    }
}
