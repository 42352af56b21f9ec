//! The values of a whole pickle, on their way to a snapshot.

use crate::error::Error;
use crate::keys::Word;
use crate::model::TraceEntry;
use crate::pickle::{Arena, Node, NodeId};
use crate::read::cache::Cache;
use crate::read::events::Events;
use crate::read::typed::{Typed, Wrong};
use crate::tables::{StackId, StringId};

/// The arena and what becomes of it.
pub(super) struct Values<'a> {
    pub(super) arena: &'a Arena<'a>,
    /// What has been converted so far.
    pub(super) cache: Cache,
    /// Events taken while the pickle was read, by record number.
    pub(super) entries: Vec<TraceEntry>,
    /// Entries that may still be made.
    budget: usize,
    /// Whether any block named its address.
    pub(super) has_block_addresses: bool,
}

impl<'a> Values<'a> {
    pub(super) fn new(arena: &'a Arena<'a>, events: Events) -> Self {
        let Events { cache, entries } = events;
        Self { arena, cache, entries, budget: arena.node_count(), has_block_addresses: false }
    }

    /// Pays for `n` entries: each is a value of its own in an honest file.
    pub(super) fn charge(&mut self, n: usize) -> Result<(), Error> {
        self.budget = self.budget.checked_sub(n).ok_or(Error::Amplified)?;
        Ok(())
    }

    pub(super) fn word(&mut self, node: NodeId) -> Word {
        self.cache.word(self.arena, node)
    }

    pub(super) fn string(&mut self, key: Word, node: NodeId) -> Result<StringId, Wrong> {
        self.cache.string(self.arena, key, node)
    }

    pub(super) fn stack(&mut self, key: Word, node: NodeId) -> Result<StackId, Wrong> {
        self.cache.stack(self.arena, key, node)
    }

    /// Entries in a list of lists, or in a plain list; 0 for anything else.
    pub(super) fn count(&self, node: NodeId) -> u64 {
        let Ok(items) = self.arena.list(Word::Other, node) else { return 0 };
        let count = |node| match self.arena.node(node) {
            Node::List(items) => self.arena.len(items) as u64,
            _ => 1,
        };
        self.arena.items(items).map(count).fold(0, u64::saturating_add)
    }
}
