//! Segments and their blocks.

use crate::error::Error;
use crate::keys::Word;
use crate::model::{Block, BlockState, Segment, SegmentKind};
use crate::pickle::{Node, NodeId};
use crate::read::typed::{Typed, Wrong};
use crate::read::values::Values;

impl Values<'_> {
    pub(super) fn segments(&mut self, node: NodeId) -> Result<Vec<Segment>, Error> {
        let items = self.arena.list(Word::Other, node).map_err(|wrong| wrong.within("segments"))?;
        let (arena, len) = (self.arena, self.arena.len(items));
        self.charge(len)?;
        let mut segments = Vec::with_capacity(len);
        for (index, node) in arena.items(items).enumerate() {
            let (mut segment, blocks) =
                self.segment(node).map_err(|wrong| wrong.within(&format!("segments[{index}]")))?;
            if let Some(blocks) = blocks {
                segment.blocks = self.blocks(index, segment.address, blocks)?;
            }
            segments.push(segment);
        }
        Ok(segments)
    }

    /// A segment without its blocks, and the node they are in.
    fn segment(&mut self, node: NodeId) -> Result<(Segment, Option<NodeId>), Wrong> {
        let mut segment = Segment {
            device: 0,
            address: 0,
            total_size: 0,
            allocated_size: 0,
            active_size: 0,
            requested_size: None,
            stream: 0,
            kind: SegmentKind::Large,
            pool: None,
            is_expandable: false,
            stack: None,
            blocks: Vec::new(),
        };
        let (mut has_address, mut has_size, mut blocks) = (false, false, None);
        let items = self.arena.dict(node)?;
        for (key, value) in self.arena.pairs(items) {
            let key = self.word(key);
            match key {
                Word::Device => segment.device = self.arena.u32(key, value)?,
                Word::Address => {
                    (segment.address, has_address) = (self.arena.u64(key, value)?, true)
                }
                Word::TotalSize => {
                    (segment.total_size, has_size) = (self.arena.u64(key, value)?, true)
                }
                Word::AllocatedSize => segment.allocated_size = self.arena.u64(key, value)?,
                Word::ActiveSize => segment.active_size = self.arena.u64(key, value)?,
                Word::RequestedSize => segment.requested_size = Some(self.arena.u64(key, value)?),
                Word::Stream => segment.stream = self.arena.u64(key, value)?,
                Word::SegmentType => segment.kind = self.segment_kind(value)?,
                Word::SegmentPoolId => segment.pool = Some(self.arena.pool(key, value)?),
                Word::IsExpandable => segment.is_expandable = self.arena.bool(key, value)?,
                Word::Frames => segment.stack = Some(self.stack(key, value)?),
                Word::Blocks => blocks = Some(value),
                _ => {}
            }
        }
        match (has_address, has_size) {
            (true, true) => Ok((segment, blocks)),
            (false, _) => Err(Wrong::missing(Word::Address, "an int")),
            (_, false) => Err(Wrong::missing(Word::TotalSize, "an int")),
        }
    }

    fn segment_kind(&mut self, node: NodeId) -> Result<SegmentKind, Wrong> {
        match self.word(node) {
            Word::Small => Ok(SegmentKind::Small),
            Word::Large => Ok(SegmentKind::Large),
            _ => Err(Wrong {
                key: Word::SegmentType,
                expected: "`small` or `large`",
                found: "something else",
            }),
        }
    }

    fn blocks(&mut self, segment: usize, start: u64, node: NodeId) -> Result<Vec<Block>, Error> {
        let place = |index: usize| format!("segments[{segment}].blocks[{index}]");
        let items = self
            .arena
            .list(Word::Blocks, node)
            .map_err(|wrong| wrong.within(&format!("segments[{segment}]")))?;
        let (arena, len) = (self.arena, self.arena.len(items));
        self.charge(len)?;
        let mut blocks = Vec::with_capacity(len);
        let mut address = start;
        for (index, node) in arena.items(items).enumerate() {
            let block = self.block(address, node).map_err(|wrong| wrong.within(&place(index)))?;
            address = block.address.saturating_add(block.size);
            blocks.push(block);
        }
        Ok(blocks)
    }

    /// A block; `address` is where it starts if it does not say so itself.
    fn block(&mut self, address: u64, node: NodeId) -> Result<Block, Wrong> {
        let mut block = Block {
            address,
            size: 0,
            requested_size: None,
            state: BlockState::Inactive,
            stack: None,
            forward_stack: None,
        };
        let (mut has_size, mut has_state, mut history) = (false, false, None);
        let items = self.arena.dict(node)?;
        for (key, value) in self.arena.pairs(items) {
            let key = self.word(key);
            match key {
                Word::Address => {
                    block.address = self.arena.u64(key, value)?;
                    self.has_block_addresses = true;
                }
                Word::Size => (block.size, has_size) = (self.arena.u64(key, value)?, true),
                Word::RequestedSize => block.requested_size = Some(self.arena.u64(key, value)?),
                Word::State => (block.state, has_state) = (self.block_state(value)?, true),
                Word::Frames => block.stack = Some(self.stack(key, value)?),
                Word::ForwardFrames => block.forward_stack = Some(self.stack(key, value)?),
                Word::History => history = Some(value),
                _ => {}
            }
        }
        if let Some(history) = history.filter(|_| block.state != BlockState::Inactive) {
            self.newest_of(history, &mut block)?;
        }
        match (has_size, has_state) {
            (true, true) => Ok(block),
            (false, _) => Err(Wrong::missing(Word::Size, "an int")),
            (_, false) => Err(Wrong::missing(Word::State, "a str")),
        }
    }

    /// Before torch 2.1, who holds an active block stands first in its `history`.
    fn newest_of(&mut self, history: NodeId, block: &mut Block) -> Result<(), Wrong> {
        let items = self.arena.list(Word::History, history)?;
        let Some(newest) = self.arena.items(items).next() else { return Ok(()) };
        let Node::Dict(items) = self.arena.node(newest) else { return Ok(()) };
        for (key, value) in self.arena.pairs(items) {
            match self.word(key) {
                Word::RealSize if block.requested_size.is_none() => {
                    block.requested_size = Some(self.arena.u64(Word::RealSize, value)?);
                }
                Word::Frames => block.stack = Some(self.stack(Word::Frames, value)?),
                _ => {}
            }
        }
        Ok(())
    }

    fn block_state(&mut self, node: NodeId) -> Result<BlockState, Wrong> {
        match self.word(node) {
            Word::ActiveAllocated => Ok(BlockState::Allocated),
            Word::ActivePendingFree | Word::ActiveAwaitingFree => Ok(BlockState::PendingFree),
            Word::Inactive => Ok(BlockState::Inactive),
            _ => Err(Wrong {
                key: Word::State,
                expected: "`active_allocated`, `active_pending_free` or `inactive`",
                found: "something else",
            }),
        }
    }
}
