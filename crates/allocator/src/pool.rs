//! Pools: for each pool, kind and stream, the free blocks in order of size and the unmapped ones in
//! order of addresses.
//!
//! PyTorch keeps one ordered set per pool with the stream as the first part of its key
//! (`BlockPool::blocks`); a list per stream gives the same order and shorter keys.

use std::collections::{BTreeMap, HashMap};

use crate::block::{Arena, Block};
use crate::settings::{MIN_BLOCK, TieBreak};

/// A private pool, or (0, 0).
pub(crate) type PoolId = (u32, u32);

/// Index of a [`FreeList`].
pub(crate) type ListId = u32;

/// Place in a free list: size, then what decides among equals.
type Key = (u64, u64);

/// Bits of a key for the place inside a segment, in units of 512 bytes: up to 32 TiB.
const PLACE_BITS: u32 = 36;

/// Free blocks of one pool, kind and stream.
#[derive(Clone, Debug)]
pub(crate) struct FreeList {
    pub(crate) pool: PoolId,
    /// Of the large pool, else of the small one.
    pub(crate) large: bool,
    /// The raw stream.
    pub(crate) stream: u64,
    /// In `BlockComparatorSize` order.
    free: BTreeMap<Key, u32>,
    /// In `BlockComparatorAddress` order.
    pub(crate) unmapped: BTreeMap<u64, u32>,
}

impl FreeList {
    /// Free blocks of at least this size, the best first.
    pub(crate) fn at_least(&self, size: u64) -> impl Iterator<Item = u32> {
        self.free.range((size, 0)..).map(|(_, id)| *id)
    }

    /// Free blocks below this size, the largest first.
    pub(crate) fn below(&self, size: u64) -> impl Iterator<Item = u32> {
        self.free.range(..(size, 0)).rev().map(|(_, id)| *id)
    }
}

/// All free lists.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    tie_break: TieBreak,
    lists: Vec<FreeList>,
    by_name: HashMap<(PoolId, bool, u64), ListId>,
    last: Option<((PoolId, bool, u64), ListId)>,
    /// Searches so far, by pool and kind: `get_free_blocks_call_count`.
    searches: HashMap<(PoolId, bool), u64>,
}

impl std::ops::Index<ListId> for Pools {
    type Output = FreeList;

    #[inline]
    fn index(&self, id: ListId) -> &FreeList {
        &self.lists[id as usize]
    }
}

impl Pools {
    /// No lists yet.
    pub(crate) fn new(tie_break: TieBreak) -> Pools {
        let (lists, by_name) = (Vec::new(), HashMap::new());
        Pools { tie_break, lists, by_name, last: None, searches: HashMap::new() }
    }

    /// The list of a pool, kind and stream.
    #[inline]
    pub(crate) fn list(&mut self, pool: PoolId, large: bool, stream: u64) -> ListId {
        let name = (pool, large, stream);
        if let Some((last, id)) = self.last
            && last == name
        {
            return id;
        }
        let id = *self.by_name.entry(name).or_insert_with(|| {
            let (free, unmapped) = (BTreeMap::new(), BTreeMap::new());
            self.lists.push(FreeList { pool, large, stream, free, unmapped });
            (self.lists.len() - 1) as ListId
        });
        self.last = Some((name, id));
        id
    }

    #[inline]
    fn key(&self, block: &Block) -> Key {
        let tie = match self.tie_break {
            TieBreak::Address => block.address,
            TieBreak::BlockCounter => block.origin.number,
            TieBreak::SegmentCounter => {
                let place = (block.address - block.origin.base) / MIN_BLOCK;
                block.origin.number << PLACE_BITS | place
            }
        };
        (block.size, tie)
    }

    /// `insert_into_blocks`.
    #[inline]
    pub(crate) fn insert(&mut self, blocks: &mut Arena, id: u32) {
        let list = blocks[id].list;
        blocks[id].inserted = self.searches_of(list);
        let key = self.key(&blocks[id]);
        let before = self.lists[list as usize].free.insert(key, id);
        assert!(before.is_none(), "a free block is listed once");
    }

    /// Takes a block out of its free list.
    #[inline]
    pub(crate) fn remove(&mut self, blocks: &Arena, id: u32) {
        let key = self.key(&blocks[id]);
        let listed = self.lists[blocks[id].list as usize].free.remove(&key);
        assert_eq!(listed, Some(id), "a free block is listed");
    }

    /// Puts a block among the unmapped ones.
    pub(crate) fn insert_unmapped(&mut self, blocks: &Arena, id: u32) {
        let block = &blocks[id];
        self.lists[block.list as usize].unmapped.insert(block.address, id);
    }

    /// Takes a block from the unmapped ones.
    pub(crate) fn remove_unmapped(&mut self, blocks: &Arena, id: u32) {
        let block = &blocks[id];
        let listed = self.lists[block.list as usize].unmapped.remove(&block.address);
        assert_eq!(listed, Some(id), "an unmapped block is listed");
    }

    /// Counts one search of a list's pool: the clock of garbage collection.
    pub(crate) fn count_search(&mut self, list: ListId) {
        let FreeList { pool, large, .. } = self.lists[list as usize];
        *self.searches.entry((pool, large)).or_default() += 1;
    }

    /// Searches of a list's pool so far.
    #[inline]
    pub(crate) fn searches_of(&self, list: ListId) -> u64 {
        if self.searches.is_empty() {
            return 0;
        }
        let FreeList { pool, large, .. } = self.lists[list as usize];
        self.searches.get(&(pool, large)).copied().unwrap_or(0)
    }

    /// Free blocks of all streams of a pool, in PyTorch's order: stream, size, tie.
    pub(crate) fn in_order(&self, pool: PoolId, large: bool) -> Vec<u32> {
        let mut lists: Vec<&FreeList> =
            self.lists.iter().filter(|list| list.pool == pool && list.large == large).collect();
        lists.sort_by_key(|list| list.stream);
        lists.iter().flat_map(|list| list.free.values().copied()).collect()
    }
}
