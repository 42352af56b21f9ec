//! Where the values of a pickle live: nodes addressed by 32-bit ids, children in one pool.
//!
//! ```text
//! nodes     … │ List{start,len,more} │ Int │ Str{start,len} │ …        16 bytes each
//! children  … │ id id id │ id id │ id id id id │ …                      4 bytes each
//! ```
//! A container's children lie in one run of the pool; lists of the same children share a run,
//! since torch writes the frames of each stack anew and training repeats its stacks. A container that grows after other values
//! were added to the pool gets further runs, listed in `spills`. Shared objects are one node
//! with several parents. Strings are ranges of the input, except those that had to be decoded.
//! Each node and child is paid for by at least one byte of input, so memory is O(input).

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use crate::pickle::{error::Fault, text};

/// A value's place in its [`Arena`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// Place in a table with one row for each node.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Node {
    /// `None`
    None,
    /// `True` or `False`
    Bool(bool),
    /// An `int` of 64 bits.
    Int(i64),
    /// A wider `int`, little endian two's complement; read it with [`Arena::int`].
    Wide {
        /// Length in bytes.
        len: u32,
        /// Start, bytes from the start of the input; decoded integers follow the input.
        start: u64,
    },
    /// A `float`.
    Float(f64),
    /// A `str`, as UTF-8 that is not yet checked; read it with [`Arena::text`].
    Str {
        /// Length in bytes.
        len: u32,
        /// Start, bytes from the start of the input; decoded text follows the input.
        start: u64,
    },
    /// A `bytes` or `bytearray`; read it with [`Arena::text`].
    Bytes {
        /// Length in bytes.
        len: u32,
        /// Start, bytes from the start of the input; decoded text follows the input.
        start: u64,
    },
    /// A `tuple`.
    Tuple(Items),
    /// A `list`.
    List(Items),
    /// A `set` or `frozenset`, in file order, not deduplicated.
    Set(Items),
    /// A `dict`: key, value, key, value; a later equal key overrides.
    Dict(Items),
    /// A `dict` that a [`Fold`](super::Fold) has taken, by the number it gave.
    Record(u32),
}

impl Node {
    /// The Python type, for messages.
    pub fn kind(self) -> &'static str {
        match self {
            Node::None => "None",
            Node::Bool(_) => "bool",
            Node::Int(_) | Node::Wide { .. } => "int",
            Node::Float(_) => "float",
            Node::Str { .. } => "str",
            Node::Bytes { .. } => "bytes",
            Node::Tuple(_) => "tuple",
            Node::List(_) => "list",
            Node::Set(_) => "set",
            Node::Dict(_) | Node::Record(_) => "dict",
        }
    }
}

/// The children of a container; opaque, read with [`Arena::items`] or [`Arena::pairs`].
///
/// Equal `Items` have equal children; lists of the same children often have equal `Items`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Items {
    /// First run: start in the pool.
    start: u32,
    /// First run: number of children.
    len: u32,
    /// Index into `spills`, [`NO_SPILL`] if all children are in the first run.
    more: u32,
}

const NO_SPILL: u32 = u32::MAX;

impl Items {
    pub(super) const EMPTY: Items = Items { start: 0, len: 0, more: NO_SPILL };

    /// A number that differs for most lists, for tables.
    #[inline]
    pub(crate) fn place(self) -> usize {
        ((u64::from(self.start) * 0x9e37_79b9) >> 12) as usize
    }

    /// Whether nothing has been put in yet.
    #[inline]
    pub(super) fn is_unfilled(self) -> bool {
        self.len == 0
    }
}

/// A run of children: start in the pool, number of children.
type Run = (u32, u32);

/// The further runs of a container.
#[derive(Default)]
struct Spill {
    runs: Vec<Run>,
    /// Children in all of them.
    len: usize,
}

impl Spill {
    fn add(&mut self, Items { start, len, .. }: Items) {
        self.len += len as usize;
        match self.runs.last_mut() {
            Some((last, length)) if *last + *length == start => *length += len,
            _ => self.runs.push((start, len)),
        }
    }
}

/// All values of one pickle.
pub struct Arena<'a> {
    input: &'a [u8],
    /// Text that does not stand in the input as it is (protocol 0 escapes).
    decoded: Vec<u8>,
    nodes: Vec<Node>,
    /// Ids of nodes, as plain numbers, which compare and copy as memory does.
    children: Vec<u32>,
    spills: Vec<Spill>,
    /// Runs of lists made before, two for each hash of their children; a later run takes the
    /// place of an earlier one, so that neither memory nor time grows with what a file holds.
    recent: Vec<[Run; 2]>,
    root: NodeId,
}

/// Places in `recent`; a power of two.
const RECENT: usize = 1 << 15;
/// Shorter runs are not worth looking for.
const SHORTEST_SHARED: usize = 4;

/// Values made once for all uses: `None`, `True`, `False`, `()`, then the integers 0 to 255.
pub(super) const NONE: NodeId = NodeId(0);
pub(super) const TRUE: NodeId = NodeId(1);
pub(super) const FALSE: NodeId = NodeId(2);
pub(super) const EMPTY_TUPLE: NodeId = NodeId(3);

/// The node of an integer from 0 to 255.
pub(super) fn small_int(value: u8) -> NodeId {
    NodeId(4 + u32::from(value))
}

/// No node has an id from here on.
pub(super) const ID_LIMIT: u32 = 1 << 31;
const TOO_MANY: &str = "more than 2,147,483,648 values, the most this reader holds";

impl<'a> Arena<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        let mut nodes = Vec::with_capacity(input.len() / 40 + 512);
        nodes.extend([Node::None, Node::Bool(true), Node::Bool(false), Node::Tuple(Items::EMPTY)]);
        nodes.extend((0..=255).map(Node::Int));
        let (decoded, children, spills) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            input,
            decoded,
            nodes,
            children,
            spills,
            recent: vec![Default::default(); RECENT],
            root: NONE,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, node: Node) -> Result<NodeId, Fault> {
        let id = self.nodes.len();
        if id >= ID_LIMIT as usize {
            return Err(Fault::TooLarge(TOO_MANY));
        }
        self.nodes.push(node);
        Ok(NodeId(id as u32))
    }

    /// Adds children to the pool, and gives them as one run.
    #[inline]
    pub(super) fn pool(&mut self, new: &[u32]) -> Result<Items, Fault> {
        let start = self.children.len();
        if start + new.len() >= u32::MAX as usize {
            return Err(Fault::TooLarge(TOO_MANY));
        }
        self.children.extend_from_slice(new);
        Ok(Items { start: start as u32, len: new.len() as u32, more: NO_SPILL })
    }

    /// Like [`Self::pool`], but gives a run made before if its children are the same.
    fn pool_shared(&mut self, new: &[u32]) -> Result<Items, Fault> {
        let place = hash(new) as usize % RECENT;
        for (start, len) in self.recent.get(place).copied().unwrap_or_default() {
            if *self.run((start, len)) == *new {
                return Ok(Items { start, len, more: NO_SPILL });
            }
        }
        let items = self.pool(new)?;
        if let Some([newer, older]) = self.recent.get_mut(place) {
            *older = std::mem::replace(newer, (items.start, items.len));
        }
        Ok(items)
    }

    /// Adds children to a container; the caller has checked its kind.
    #[inline]
    pub(super) fn extend(&mut self, container: NodeId, new: &[u32]) -> Result<(), Fault> {
        let node = self.nodes.get(container.index());
        let Some(Node::List(items) | Node::Dict(items) | Node::Set(items)) = node else {
            return Err(Fault::Malformed("a list, dict or set"));
        };
        let mut items = *items;
        if items.len == 0 {
            let shared = matches!(node, Some(Node::List(_))) && new.len() >= SHORTEST_SHARED;
            items = if shared { self.pool_shared(new)? } else { self.pool(new)? };
        } else {
            let added = self.pool(new)?;
            if items.more == NO_SPILL && items.start + items.len == added.start {
                items.len += added.len;
            } else {
                if items.more == NO_SPILL {
                    items.more = self.spills.len() as u32;
                    self.spills.push(Spill::default());
                }
                if let Some(spill) = self.spills.get_mut(items.more as usize) {
                    spill.add(added);
                }
            }
        }
        let node = self.nodes.get_mut(container.index());
        if let Some(Node::List(place) | Node::Dict(place) | Node::Set(place)) = node {
            *place = items;
        }
        Ok(())
    }

    /// Keeps decoded text and gives its place, counted on from the end of the input.
    pub(super) fn keep(&mut self, text: &[u8]) -> u64 {
        let start = (self.input.len() + self.decoded.len()) as u64;
        self.decoded.extend_from_slice(text);
        start
    }

    /// Puts a record in the place of a dict without children.
    #[inline]
    pub(super) fn set_record(&mut self, dict: NodeId, record: u32) {
        if let Some(node) = self.nodes.get_mut(dict.index()) {
            *node = Node::Record(record);
        }
    }

    pub(super) fn set_root(&mut self, root: NodeId) {
        self.root = root;
    }

    /// The value the pickle stands for.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// Number of nodes: at most 260 more than the input has bytes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Number of places in containers: at most as many as the input has bytes.
    pub fn child_count(&self) -> usize {
        self.children.len()
    }

    /// The value at `id`; `None` (Python's) for an id of another arena that is too large.
    #[inline]
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes.get(id.index()).copied().unwrap_or(Node::None)
    }

    /// The bytes of a `str` or `bytes`.
    #[inline]
    pub fn text(&self, id: NodeId) -> Option<&[u8]> {
        match self.node(id) {
            Node::Str { len, start } | Node::Bytes { len, start } => self.bytes(len, start),
            _ => None,
        }
    }

    /// An `int` of up to 128 bits.
    pub fn int(&self, id: NodeId) -> Option<i128> {
        match self.node(id) {
            Node::Int(value) => Some(value.into()),
            Node::Wide { len, start } => {
                self.bytes(len, start).and_then(text::long).map(i128::from_le_bytes)
            }
            _ => None,
        }
    }

    fn bytes(&self, len: u32, start: u64) -> Option<&[u8]> {
        let (start, len) = (start as usize, len as usize);
        match start.checked_sub(self.input.len()) {
            None => self.input.get(start..start + len),
            Some(start) => self.decoded.get(start..start + len),
        }
    }

    /// The children of a tuple, list or set; of a dict, key, value, key, value.
    #[inline]
    pub fn items(&self, items: Items) -> Children<'_> {
        let spilled = self.spill(items).map(|spill| spill.runs.as_slice()).unwrap_or_default();
        let run = self.run((items.start, items.len)).iter();
        Children { pool: &self.children, run, spilled: spilled.iter() }
    }

    #[inline]
    fn spill(&self, items: Items) -> Option<&Spill> {
        // `NO_SPILL` is beyond all of them.
        self.spills.get(items.more as usize)
    }

    /// The keys and values of a dict.
    #[inline]
    pub fn pairs(&self, items: Items) -> impl Iterator<Item = (NodeId, NodeId)> {
        let mut children = self.items(items);
        std::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    fn run(&self, run: Run) -> &[u32] {
        children_of(&self.children, run)
    }

    /// Number of children; a dict has two for each key.
    pub fn len(&self, items: Items) -> usize {
        items.len as usize + self.spill(items).map_or(0, |spill| spill.len)
    }
}

/// The children of a container in order.
#[derive(Debug, Clone)]
pub struct Children<'a> {
    pool: &'a [u32],
    run: std::slice::Iter<'a, u32>,
    spilled: std::slice::Iter<'a, Run>,
}

impl Iterator for Children<'_> {
    type Item = NodeId;

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        loop {
            if let Some(&id) = self.run.next() {
                return Some(NodeId(id));
            }
            self.run = children_of(self.pool, *self.spilled.next()?).iter();
        }
    }
}

/// A run of the pool; none is made that reaches beyond it.
#[inline]
fn children_of(pool: &[u32], (start, len): Run) -> &[u32] {
    let rest = pool.get(start as usize..).unwrap_or_default();
    rest.get(..len as usize).unwrap_or_default()
}

/// A quick hash of a run, for a table that stays sound whatever it gives.
#[inline]
fn hash(run: &[u32]) -> u64 {
    FxBuildHasher.hash_one(run)
}
