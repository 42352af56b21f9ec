//! Typed access to the values of a pickle.

use std::borrow::Cow;

use crate::error::Error;
use crate::keys::Word;
use crate::model::PoolId;
use crate::pickle::{Arena, Items, Node, NodeId};

/// A value that is not what it must be; the place is added on the way out.
#[derive(Debug)]
pub(super) struct Wrong {
    /// Key within the entry; empty for the entry itself.
    pub(super) key: Word,
    pub(super) expected: &'static str,
    pub(super) found: &'static str,
}

impl Wrong {
    /// The error, at the entry named by `place`.
    #[cold]
    pub(super) fn within(self, place: &str) -> Error {
        let place = match self.key {
            Word::Other => place.to_owned(),
            key => format!("{place}.{}", key.text()),
        };
        Error::Field { place, expected: self.expected, found: self.found }
    }

    #[cold]
    pub(super) fn missing(key: Word, expected: &'static str) -> Self {
        Wrong { key, expected, found: "nothing" }
    }
}

/// A value as the type it must have; `key` is where it stands, for the error.
pub(super) trait Typed {
    /// An int from 0 on.
    fn u64(&self, key: Word, node: NodeId) -> Result<u64, Wrong>;
    /// An int of 32 bits from 0 on.
    fn u32(&self, key: Word, node: NodeId) -> Result<u32, Wrong>;
    fn i64(&self, key: Word, node: NodeId) -> Result<i64, Wrong>;
    /// A float, or an int.
    fn f64(&self, key: Word, node: NodeId) -> Result<f64, Wrong>;
    fn bool(&self, key: Word, node: NodeId) -> Result<bool, Wrong>;
    fn dict(&self, node: NodeId) -> Result<Items, Wrong>;
    /// A list or tuple.
    fn list(&self, key: Word, node: NodeId) -> Result<Items, Wrong>;
    /// A pair of ints.
    fn pool(&self, key: Word, node: NodeId) -> Result<PoolId, Wrong>;
    /// A string; what is not UTF-8 in it becomes U+FFFD.
    fn text_of(&self, key: Word, node: NodeId) -> Result<Cow<'_, str>, Wrong>;
    /// The error that a value is not what is expected.
    fn wrong(&self, key: Word, node: NodeId, expected: &'static str) -> Wrong;
}

impl Typed for Arena<'_> {
    #[inline]
    fn u64(&self, key: Word, node: NodeId) -> Result<u64, Wrong> {
        let found = match self.node(node) {
            Node::Int(value) if value >= 0 => return Ok(value as u64),
            Node::Int(_) => "a negative int",
            Node::Wide { .. } => match self.int(node).and_then(|int| int.try_into().ok()) {
                Some(value) => return Ok(value),
                None => "a greater int",
            },
            other => other.kind(),
        };
        Err(Wrong { key, expected: "an int of 64 bits from 0 on", found })
    }

    fn u32(&self, key: Word, node: NodeId) -> Result<u32, Wrong> {
        let found = "a greater int";
        u32::try_from(self.u64(key, node)?).map_err(|_| Wrong {
            key,
            expected: "an int of 32 bits",
            found,
        })
    }

    fn i64(&self, key: Word, node: NodeId) -> Result<i64, Wrong> {
        match self.node(node) {
            Node::Int(value) => Ok(value),
            _ => Err(self.wrong(key, node, "an int")),
        }
    }

    fn f64(&self, key: Word, node: NodeId) -> Result<f64, Wrong> {
        match self.node(node) {
            Node::Float(value) => Ok(value),
            Node::Int(value) => Ok(value as f64),
            _ => Err(self.wrong(key, node, "a float")),
        }
    }

    fn bool(&self, key: Word, node: NodeId) -> Result<bool, Wrong> {
        match self.node(node) {
            Node::Bool(value) => Ok(value),
            // The C++ pickler of some versions writes flags as numbers.
            Node::Int(value) => Ok(value != 0),
            _ => Err(self.wrong(key, node, "a bool")),
        }
    }

    fn dict(&self, node: NodeId) -> Result<Items, Wrong> {
        match self.node(node) {
            Node::Dict(items) => Ok(items),
            _ => Err(self.wrong(Word::Other, node, "a dict")),
        }
    }

    fn list(&self, key: Word, node: NodeId) -> Result<Items, Wrong> {
        match self.node(node) {
            Node::List(items) | Node::Tuple(items) => Ok(items),
            _ => Err(self.wrong(key, node, "a list")),
        }
    }

    fn pool(&self, key: Word, node: NodeId) -> Result<PoolId, Wrong> {
        let items = self.list(key, node)?;
        let mut items = self.items(items);
        match (items.next(), items.next(), items.next()) {
            (Some(first), Some(second), None) => {
                Ok(PoolId(self.u32(key, first)?, self.u32(key, second)?))
            }
            _ => Err(Wrong { key, expected: "a pair of ints", found: "another number of items" }),
        }
    }

    fn text_of(&self, key: Word, node: NodeId) -> Result<Cow<'_, str>, Wrong> {
        match (self.node(node), self.text(node)) {
            (Node::Str { .. }, Some(text)) => Ok(String::from_utf8_lossy(text)),
            _ => Err(self.wrong(key, node, "a str")),
        }
    }

    #[cold]
    fn wrong(&self, key: Word, node: NodeId, expected: &'static str) -> Wrong {
        Wrong { key, expected, found: self.node(node).kind() }
    }
}
