//! Events, made from dicts: while the pickle is read where possible, else from the arena.

use crate::keys::Word;
use crate::model::{Action, TraceEntry};
use crate::pickle::{Arena, Fold, Node, NodeId, Pairs, Value};
use crate::read::cache::Cache;
use crate::read::typed::{Typed, Wrong};
use crate::tables::StringId;

/// An event has at least this many keys: action, size, stream, and an address or what was free.
const FEWEST_KEYS: usize = 4;

/// Events in the order in which the file completes them.
#[derive(Default)]
pub(super) struct Events {
    pub(super) cache: Cache,
    pub(super) entries: Vec<TraceEntry>,
}

impl Fold for Events {
    /// Takes a dict that has an action and is sound; what is wrong with another is said later,
    /// when its place is known.
    #[inline]
    fn dict(&mut self, arena: &Arena<'_>, pairs: Pairs<'_>) -> Option<u32> {
        let cache = &mut self.cache;
        if pairs.len() < FEWEST_KEYS
            || !pairs.iter().any(|(key, _)| cache.word(arena, key) == Word::Action)
        {
            return None;
        }
        let record = u32::try_from(self.entries.len()).ok()?;
        self.entries.push(entry(cache, arena, pairs.iter()).ok()?);
        Some(record)
    }
}

/// An event from its keys and values.
pub(super) fn entry(
    cache: &mut Cache,
    arena: &Arena<'_>,
    pairs: impl Iterator<Item = (NodeId, Value)>,
) -> Result<TraceEntry, Wrong> {
    let mut entry = TraceEntry {
        action: Action::Alloc,
        address: 0,
        size: 0,
        stream: 0,
        time_us: 0,
        device_free: 0,
        stack: None,
        forward_stack: None,
        compile_context: None,
        user_metadata: None,
        pool: None,
    };
    let (mut has_action, mut has_address, mut has_size) = (false, false, false);
    let mut pool = None;
    for (key, value) in pairs {
        let key = cache.word(arena, key);
        match key {
            Word::Addr => (entry.address, has_address) = (unsigned(arena, key, value)?, true),
            Word::Size => (entry.size, has_size) = (unsigned(arena, key, value)?, true),
            Word::Stream => entry.stream = unsigned(arena, key, value)?,
            Word::TimeUs => entry.time_us = unsigned(arena, key, value)?,
            Word::DeviceFree => entry.device_free = unsigned(arena, key, value)?,
            Word::Action
            | Word::Frames
            | Word::ForwardFrames
            | Word::PoolId
            | Word::CompileContext
            | Word::UserMetadata => {
                let node = node(key, value)?;
                match key {
                    Word::Action => {
                        (entry.action, has_action) = (action(cache, arena, node)?, true)
                    }
                    Word::Frames => entry.stack = Some(cache.stack(arena, key, node)?),
                    Word::ForwardFrames => {
                        entry.forward_stack = Some(cache.stack(arena, key, node)?)
                    }
                    Word::PoolId => pool = Some(arena.pool(key, node)),
                    Word::CompileContext => {
                        entry.compile_context = optional(cache, arena, key, node)?
                    }
                    _ => entry.user_metadata = optional(cache, arena, key, node)?,
                }
            }
            _ => {}
        }
    }
    // Of a snapshot it is the pool that was asked for, whatever number somebody made up.
    entry.pool = match pool {
        Some(Err(_)) if entry.action == Action::Snapshot => None,
        pool => pool.transpose()?,
    };
    let needs_address = !matches!(entry.action, Action::Oom | Action::Snapshot | Action::Other(_));
    if !has_action {
        Err(Wrong::missing(Word::Action, "a str"))
    } else if needs_address && !has_address {
        Err(Wrong::missing(Word::Addr, "an int"))
    } else if !has_size {
        Err(Wrong::missing(Word::Size, "an int"))
    } else {
        Ok(entry)
    }
}

#[inline]
fn unsigned(arena: &Arena<'_>, key: Word, value: Value) -> Result<u64, Wrong> {
    match value {
        Value::Int(value) => u64::try_from(value).map_err(|_| Wrong {
            key,
            expected: "an int of 64 bits from 0 on",
            found: "a negative int",
        }),
        Value::Node(node) => arena.u64(key, node),
    }
}

#[inline]
fn node(key: Word, value: Value) -> Result<NodeId, Wrong> {
    match value {
        Value::Node(node) => Ok(node),
        Value::Int(_) => Err(Wrong { key, expected: "no number", found: "int" }),
    }
}

/// A string, or nothing if the value is `None`.
fn optional(
    cache: &mut Cache,
    arena: &Arena<'_>,
    key: Word,
    node: NodeId,
) -> Result<Option<StringId>, Wrong> {
    match arena.node(node) {
        Node::None => Ok(None),
        _ => cache.string(arena, key, node).map(Some),
    }
}

fn action(cache: &mut Cache, arena: &Arena<'_>, node: NodeId) -> Result<Action, Wrong> {
    Ok(match cache.word(arena, node) {
        Word::Alloc => Action::Alloc,
        Word::FreeRequested => Action::FreeRequested,
        Word::FreeCompleted => Action::FreeCompleted,
        Word::SegmentAlloc => Action::SegmentAlloc,
        Word::SegmentFree => Action::SegmentFree,
        Word::SegmentMap => Action::SegmentMap,
        Word::SegmentUnmap => Action::SegmentUnmap,
        Word::Oom => Action::Oom,
        Word::Snapshot => Action::Snapshot,
        Word::Annotate => Action::Annotate,
        _ => Action::Other(cache.string(arena, Word::Action, node)?),
    })
}
