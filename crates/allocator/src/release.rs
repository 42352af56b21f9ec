//! Giving memory back to the card: before a request is tried again, on `empty_cache`, and by garbage
//! collection.

use recording::Event;

use crate::allocator::{Allocator, Request};
use crate::block::State;
use crate::pool::PoolId;
use crate::settings::UNLIMITED;
use crate::source::SegmentSource;
use crate::stats::Stats;

impl<S: SegmentSource> Allocator<S> {
    /// `torch.cuda.empty_cache()`.
    pub fn empty_cache(&mut self) {
        self.release_cached();
    }

    /// A private pool that no graph uses any more: emptying the cache reaches it.
    pub fn make_freeable(&mut self, pool: PoolId) {
        if pool != (0, 0) && !self.freeable.contains(&pool) {
            self.freeable.push(pool);
        }
    }

    /// `release_cached_blocks`: waits for all streams, then gives back whole free segments and pages.
    pub(crate) fn release_cached(&mut self) {
        self.synchronize();
        self.release_pool((0, 0), true);
        self.release_pool((0, 0), false);
        for pool in self.freeable.clone() {
            self.release_pool(pool, false);
            self.release_pool(pool, true);
        }
    }

    /// `synchronize_and_free_events`.
    fn synchronize(&mut self) {
        self.stats.num_sync_all_streams += 1;
        if self.pending == 0 {
            return;
        }
        let mut pending: Vec<(u64, u32)> = self
            .blocks
            .iter()
            .filter(|(_, block)| block.state == State::Pending)
            .map(|(id, block)| (block.address, id))
            .collect();
        pending.sort_unstable();
        pending.into_iter().for_each(|(_, id)| self.free_block(id));
    }

    /// `release_blocks`.
    fn release_pool(&mut self, pool: PoolId, large: bool) {
        let mut to_unmap = Vec::new();
        for id in self.pools.in_order(pool, large) {
            if self.blocks[id].origin.expandable {
                to_unmap.push(id);
            } else if !self.blocks[id].is_split() {
                self.release_block(id);
            }
        }
        to_unmap.into_iter().for_each(|id| self.unmap(id));
    }

    /// `release_block`: one `cudaFree`.
    fn release_block(&mut self, id: u32) {
        let (address, size, list) = {
            let block = &self.blocks[id];
            (block.address, block.size, block.list)
        };
        let (pool, stream, large) =
            (self.pools[list].pool, self.pools[list].stream, self.pools[list].large);
        self.pools.remove(&self.blocks, id);
        self.blocks.remove(id);
        self.stats.segment.decrease(large, 1);
        self.stats.reserved_bytes.decrease(large, size);
        self.stats.num_device_free += 1;
        if self.settings.max_split_size <= size {
            Stats::oversize(&mut self.stats.oversize_segments, false);
        }
        let event = Event::SegmentFree { address, size, stream, pool };
        self.source.give_back(&event);
        self.events.push(event);
    }

    /// `release_available_cached_blocks`: oversize blocks of the request's stream, one that is large
    /// enough or several. Expandable ones are spared since 2.5; before, PyTorch failed there.
    pub(crate) fn release_available(&mut self, request: &Request) -> bool {
        let split = self.settings.max_split_size;
        if split == UNLIMITED {
            return false;
        }
        let wanted = request.size.max(split);
        let single = self.pools[request.list].at_least(wanted).next();
        if let Some(id) = single
            && self.is_whole_segment(id)
        {
            self.release_block(id);
            return true;
        }
        let oversize: Vec<u32> = self.pools[request.list]
            .below(wanted)
            .take_while(|id| split <= self.blocks[*id].size)
            .collect();
        let mut released = 0;
        for id in oversize {
            if wanted <= released {
                break;
            }
            if self.is_whole_segment(id) {
                released += self.blocks[id].size;
                self.release_block(id);
            }
        }
        wanted <= released
    }

    /// Can one `cudaFree` give it back? Oversize blocks are split only where a recording began under
    /// other settings.
    fn is_whole_segment(&self, id: u32) -> bool {
        !self.blocks[id].origin.expandable && !self.blocks[id].is_split()
    }

    /// `garbage_collect_cached_blocks`: above the threshold, unused segments of the default large
    /// pool go, the older half first.
    pub(crate) fn collect_garbage(&mut self) {
        let Some(limit) = self.limit else { return };
        let threshold = (self.settings.garbage_collection_threshold * limit as f64) as u64;
        if self.reserved() <= threshold {
            return;
        }
        let target = self.reserved() - threshold;
        let mut reclaimed = 0;
        let mut candidates: Vec<(u32, u64)> = self
            .pools
            .in_order((0, 0), true)
            .into_iter()
            .filter(|id| !self.blocks[*id].is_split())
            .map(|id| {
                let block = &self.blocks[id];
                (id, self.pools.searches_of(block.list) - block.inserted)
            })
            .collect();
        let mut freed = true;
        while reclaimed < target && freed && !candidates.is_empty() {
            let total: u64 = candidates.iter().map(|(_, age)| age).sum();
            let old = total as f64 / candidates.len() as f64;
            freed = false;
            let mut kept = Vec::new();
            for (id, age) in candidates {
                if age as f64 >= old && self.is_whole_segment(id) {
                    freed = true;
                    reclaimed += self.blocks[id].size;
                    self.release_block(id);
                } else {
                    kept.push((id, age));
                }
            }
            candidates = kept;
        }
    }
}
