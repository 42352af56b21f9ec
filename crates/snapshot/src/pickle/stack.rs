//! The machine's stack: ids of nodes, and integers that are not nodes yet.
//!
//! Most integers go straight into a dict that a fold takes. They wait beside the stack and
//! become nodes only when a container or the memo needs them.

use crate::pickle::arena::{Arena, ID_LIMIT, Node, NodeId};
use crate::pickle::error::Fault;

/// Values not yet put into a container.
#[derive(Default)]
pub(super) struct Stack {
    /// Ids of nodes; from [`ID_LIMIT`] on, places in `ints`.
    entries: Vec<u32>,
    /// Integers that are not nodes: value and entry, in the order of their entries.
    ints: Vec<(i64, usize)>,
}

impl Stack {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn push(&mut self, id: NodeId) {
        self.entries.push(id.0);
    }

    #[inline]
    pub(super) fn push_int(&mut self, value: i64) -> Result<(), Fault> {
        let place = self.ints.len() as u32;
        if self.ints.len() >= ID_LIMIT as usize {
            return Err(Fault::TooLarge("more than 2,147,483,648 integers on the stack"));
        }
        self.ints.push((value, self.entries.len()));
        self.entries.push(ID_LIMIT | place);
        Ok(())
    }

    /// Pushes ids of nodes until one is `unset`; gives how many were pushed.
    #[inline]
    pub(super) fn extend(&mut self, ids: impl Iterator<Item = u32>, unset: u32) -> usize {
        let before = self.entries.len();
        self.entries.extend(ids);
        let pushed = self.from(before);
        // Ids of nodes have no bit of the limit: one look at all of them at once.
        if pushed.iter().fold(0, |all, id| all | id) < ID_LIMIT {
            return pushed.len();
        }
        let sound = pushed.iter().position(|&id| id == unset).unwrap_or(pushed.len());
        self.entries.truncate(before + sound);
        sound
    }

    /// The entry at `at`: a node, or no id of any node.
    #[inline]
    pub(super) fn peek(&self, at: usize) -> NodeId {
        NodeId(self.entries.get(at).copied().unwrap_or(u32::MAX))
    }

    /// The node at `at`, made now if it was only an integer.
    #[inline]
    pub(super) fn node(&mut self, at: usize, arena: &mut Arena<'_>) -> Result<NodeId, Fault> {
        if self.peek(at).0 >= ID_LIMIT {
            self.settle(at, arena)?;
        }
        Ok(self.peek(at))
    }

    /// The nodes from `from` on, made now if they were only integers.
    #[inline]
    pub(super) fn nodes(&mut self, from: usize, arena: &mut Arena<'_>) -> Result<&[u32], Fault> {
        self.settle(from, arena)?;
        Ok(self.from(from))
    }

    #[inline]
    fn settle(&mut self, from: usize, arena: &mut Arena<'_>) -> Result<(), Fault> {
        let first = self.first_int(from);
        for &(value, at) in self.ints.iter().skip(first) {
            let node = arena.push(Node::Int(value))?;
            if let Some(entry) = self.entries.get_mut(at) {
                *entry = node.0;
            }
        }
        self.ints.truncate(first);
        Ok(())
    }

    /// Drops all from `from` on.
    #[inline]
    pub(super) fn truncate(&mut self, from: usize) {
        let first = self.first_int(from);
        self.ints.truncate(first);
        self.entries.truncate(from);
    }

    /// The entries from `from` on; none if there are fewer.
    #[inline]
    fn from(&self, from: usize) -> &[u32] {
        self.entries.get(from..).unwrap_or_default()
    }

    /// Where the integers of the entries from `from` on start.
    #[inline]
    fn first_int(&self, from: usize) -> usize {
        let after = self.ints.iter().rev().take_while(|&&(_, at)| at >= from).count();
        self.ints.len() - after
    }

    /// The entries from `from` on as keys and values.
    #[inline]
    pub(super) fn pairs(&self, from: usize) -> Pairs<'_> {
        Pairs { entries: self.from(from).as_chunks().0, ints: &self.ints }
    }
}

/// A value of a dict that is being completed.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    /// An integer that is not a node.
    Int(i64),
    Node(NodeId),
}

/// The keys and values of a dict that is being completed.
#[derive(Clone, Copy)]
pub(crate) struct Pairs<'a> {
    entries: &'a [[u32; 2]],
    ints: &'a [(i64, usize)],
}

impl Pairs<'_> {
    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Each key (an id of no node if it is an integer) with its value.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeId, Value)> {
        self.entries.iter().map(|&[key, value]| {
            let place = value.checked_sub(ID_LIMIT);
            let value = match place.and_then(|place| self.ints.get(place as usize)) {
                Some((int, _)) => Value::Int(*int),
                None => Value::Node(NodeId(value)),
            };
            (NodeId(key), value)
        })
    }
}
