//! Blocks, linked in order of addresses inside their segment, in one arena.
//!
//! ```text
//! segment:  | block 0 | block 3 | block 1          |
//!           prev none   prev 0    prev 3, next none
//! ```
//! An expandable segment is one chain over its whole reserved range; parts without memory behind
//! them are blocks that are not mapped.

use crate::pool::ListId;

pub(crate) const NONE: u32 = u32::MAX;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In a free list.
    Free,
    Allocated,
    /// Given back, still used by a stream.
    Pending,
    /// Of an expandable segment, without memory.
    Unmapped,
}

/// `Block`.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// Bytes asked for by the last user.
    pub(crate) requested: u64,
    /// Searches of its pool when it was put into the free list.
    pub(crate) inserted: u64,
    /// The block before it in its segment, or [`NONE`].
    pub(crate) prev: u32,
    /// The block after it in its segment, or [`NONE`].
    pub(crate) next: u32,
    /// Pool and stream.
    pub(crate) list: ListId,
    /// How often this place of the arena was used: tells a handle of an old block from a new one.
    pub(crate) generation: u32,
    /// What it is.
    pub(crate) state: State,
    /// The segment it was cut from.
    pub(crate) origin: Origin,
}

/// What blocks of one segment share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// Start of the segment, which pages are counted from.
    pub(crate) base: u64,
    /// Number of the segment, or of the block itself where blocks are numbered: see `TieBreak`.
    pub(crate) number: u64,
    /// Can it grow?
    pub(crate) expandable: bool,
}

impl Block {
    /// `is_split`: it shares its segment.
    pub(crate) fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }
}

/// All blocks; places are used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    blocks: Vec<Block>,
    unused: Vec<u32>,
}

impl std::ops::Index<u32> for Arena {
    type Output = Block;

    #[inline]
    fn index(&self, id: u32) -> &Block {
        &self.blocks[id as usize]
    }
}

impl std::ops::IndexMut<u32> for Arena {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut Block {
        &mut self.blocks[id as usize]
    }
}

impl Arena {
    /// Keeps a new block.
    #[inline]
    pub(crate) fn add(&mut self, mut block: Block) -> u32 {
        match self.unused.pop() {
            Some(id) => {
                let place = &mut self.blocks[id as usize];
                block.generation = place.generation.wrapping_add(1);
                *place = block;
                id
            }
            None => {
                self.blocks.push(block);
                (self.blocks.len() - 1) as u32
            }
        }
    }

    /// Forgets a block that no chain holds any more.
    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        let block = &mut self.blocks[id as usize];
        block.generation = block.generation.wrapping_add(1);
        self.unused.push(id);
    }

    /// `splice`: puts a block between two others, either of which may be [`NONE`].
    #[inline]
    pub(crate) fn splice(&mut self, before: u32, id: u32, after: u32) {
        self[id].prev = before;
        self[id].next = after;
        if before != NONE {
            self[before].next = id;
        }
        if after != NONE {
            self[after].prev = id;
        }
    }

    /// Joins a neighbour into `into`, which survives; the caller took it from its list.
    #[inline]
    pub(crate) fn absorb(&mut self, into: u32, neighbour: u32) {
        let Block { address, size, prev, next, .. } = self[neighbour];
        if self[into].prev == neighbour {
            assert_eq!(address + size, self[into].address, "neighbours touch");
            self[into].address = address;
            let after = self[into].next;
            self.splice(prev, into, after);
        } else {
            assert_eq!(self[into].address + self[into].size, address, "neighbours touch");
            let before = self[into].prev;
            self.splice(before, into, next);
        }
        self[into].size += size;
        self.remove(neighbour);
    }

    /// Every block that is in use, free, pending or unmapped, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Block)> {
        let mut gone = vec![false; self.blocks.len()];
        self.unused.iter().for_each(|id| gone[*id as usize] = true);
        let all = self.blocks.iter().enumerate();
        all.filter(move |(id, _)| !gone[*id]).map(|(id, block)| (id as u32, block))
    }
}
