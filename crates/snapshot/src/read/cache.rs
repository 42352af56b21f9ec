//! What strings, frames and stacks have been converted to, so that each is converted once.

use std::collections::HashMap;

use crate::keys::Word;
use crate::pickle::{Arena, Items, Node, NodeId};
use crate::read::typed::{Typed, Wrong};
use crate::tables::{Frame, FrameId, Interner, StackId, StringId};

/// Places in `Cache::recent`; a power of two.
const RECENT: usize = 1 << 12;

/// Nodes that have been converted. Nodes never change once they are complete.
#[derive(Default)]
pub(super) struct Cache {
    pub(super) interner: Interner,
    words: ByNode<u8>,
    frames: ByNode<u32>,
    strings: ByNode<u32>,
    /// The stacks that lists of frames are.
    stacks: HashMap<Items, StackId>,
    /// Some of `stacks`, found without a sound hash: training repeats its stacks.
    recent: Vec<Option<(Items, StackId)>>,
    /// Frames in all stacks converted so far.
    converted: usize,
    /// Frames of the stack at hand.
    scratch: Vec<FrameId>,
}

/// A number for each node up to the last that was set; 0 is not set.
#[derive(Default)]
struct ByNode<T>(Vec<T>);

impl<T: Copy + Default> ByNode<T> {
    #[inline]
    fn get(&self, node: NodeId) -> T {
        self.0.get(node.index()).copied().unwrap_or_default()
    }

    #[cold]
    fn set(&mut self, node: NodeId, value: T) {
        if self.0.len() <= node.index() {
            self.0.resize(node.index() + 1, T::default());
        }
        if let Some(place) = self.0.get_mut(node.index()) {
            *place = value;
        }
    }
}

impl Cache {
    /// Which known word a string is.
    #[inline]
    pub(super) fn word(&mut self, arena: &Arena<'_>, node: NodeId) -> Word {
        match Word::at(self.words.get(node)) {
            Some(word) => word,
            None => self.new_word(arena, node),
        }
    }

    fn new_word(&mut self, arena: &Arena<'_>, node: NodeId) -> Word {
        let Node::Str { .. } = arena.node(node) else { return Word::Other };
        let word = arena.text(node).map_or(Word::Other, Word::of);
        self.words.set(node, word.number());
        word
    }

    pub(super) fn string(
        &mut self,
        arena: &Arena<'_>,
        key: Word,
        node: NodeId,
    ) -> Result<StringId, Wrong> {
        if let Some(index) = self.strings.get(node).checked_sub(1) {
            return Ok(StringId::new(index as usize));
        }
        let text = arena.text_of(key, node)?;
        let id = self.interner.string(&text);
        self.strings.set(node, id.index() as u32 + 1);
        Ok(id)
    }

    /// The stack that a list of frames is.
    pub(super) fn stack(
        &mut self,
        arena: &Arena<'_>,
        key: Word,
        node: NodeId,
    ) -> Result<StackId, Wrong> {
        let items = arena.list(key, node)?;
        if self.recent.is_empty() {
            self.recent.resize(RECENT, None);
        }
        let place = items.place() % RECENT;
        if let Some(Some((known, id))) = self.recent.get(place)
            && *known == items
        {
            return Ok(*id);
        }
        let id = match self.stacks.get(&items) {
            Some(&id) => id,
            None => self.new_stack(arena, key, items)?,
        };
        if let Some(recent) = self.recent.get_mut(place) {
            *recent = Some((items, id));
        }
        Ok(id)
    }

    fn new_stack(&mut self, arena: &Arena<'_>, key: Word, items: Items) -> Result<StackId, Wrong> {
        // Each list has its own run in the pool, so that all together are no longer than the pool;
        // unless a list grows between its uses, which no pickler does and which would make a
        // small file into a great many frames.
        self.converted += arena.len(items);
        if self.converted > arena.child_count() {
            let (expected, found) = ("a list that is complete", "one that grows between its uses");
            return Err(Wrong { key, expected, found });
        }
        self.scratch.clear();
        for node in arena.items(items) {
            let frame = match self.frames.get(node).checked_sub(1) {
                Some(index) => FrameId::new(index as usize),
                None => self.frame(arena, key, node)?,
            };
            self.scratch.push(frame);
        }
        let id = self.interner.stack(&self.scratch);
        self.stacks.insert(items, id);
        Ok(id)
    }

    fn frame(&mut self, arena: &Arena<'_>, key: Word, node: NodeId) -> Result<FrameId, Wrong> {
        let Node::Dict(items) = arena.node(node) else {
            return Err(arena.wrong(key, node, "a list of dicts"));
        };
        let (mut name, mut filename, mut line) = (None, None, 0);
        for (key, value) in arena.pairs(items) {
            match self.word(arena, key) {
                Word::Name => name = Some(value),
                Word::Filename => filename = Some(value),
                // Some versions write 2^64 - 1 where the line is not known.
                Word::Line => {
                    line = arena.int(value).and_then(|line| line.try_into().ok()).unwrap_or(0)
                }
                _ => {}
            }
        }
        let mut text = |key, node: Option<NodeId>| match node {
            Some(node) => self.string(arena, key, node),
            None => Ok(self.interner.string("")),
        };
        let (name, filename) = (text(Word::Name, name)?, text(Word::Filename, filename)?);
        let id = self.interner.frame(Frame { name, filename, line });
        self.frames.set(node, id.index() as u32 + 1);
        Ok(id)
    }
}
