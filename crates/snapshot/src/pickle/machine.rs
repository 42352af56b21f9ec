//! The stack machine: one instruction after the other, until `STOP`.

use crate::pickle::arena::{self, Arena, Items, Node, NodeId};
use crate::pickle::cursor::Cursor;
use crate::pickle::error::{Error, Fault};
use crate::pickle::stack::Stack;
use crate::pickle::{Fold, opcode::*, text};

/// A memo place that was never set.
const UNSET: u32 = u32::MAX;

/// The state between two instructions.
pub(super) struct Machine<'a, 'f, F> {
    pub(super) cursor: Cursor<'a>,
    pub(super) arena: Arena<'a>,
    /// Takes dicts as they are completed.
    fold: &'f mut F,
    pub(super) stack: Stack,
    /// Heights of the stack at each open `MARK`.
    pub(super) marks: Vec<u32>,
    /// Values by memo index.
    pub(super) memo: Vec<u32>,
    /// Length of the input: no honest pickle has a memo index beyond it.
    memo_limit: u64,
}

impl<'a, 'f, F: Fold> Machine<'a, 'f, F> {
    pub(super) fn new(input: &'a [u8], fold: &'f mut F) -> Self {
        Self {
            cursor: Cursor::new(input),
            arena: Arena::new(input),
            fold,
            stack: Stack::default(),
            marks: Vec::new(),
            memo: Vec::new(),
            memo_limit: input.len() as u64,
        }
    }

    /// Runs to `STOP` and gives all values.
    pub(super) fn run(mut self) -> Result<Arena<'a>, Error> {
        loop {
            let at = self.cursor.position();
            let Some(opcode) = self.cursor.next() else { return Err(Error::NoStop { at }) };
            if opcode == STOP {
                let root = self.pop().map_err(|fault| fault.at(at, opcode))?;
                self.arena.set_root(root);
                return Ok(self.arena);
            }
            self.step(opcode).map_err(|fault| fault.at(at, opcode))?;
        }
    }

    /// The instructions most snapshots consist of; all others in `rare`.
    #[inline]
    fn step(&mut self, opcode: u8) -> Result<(), Fault> {
        match opcode {
            LONG_BINGET => {
                let index = self.cursor.u32()?;
                self.get(index.into())?;
                self.more_gets();
                self.plain();
                Ok(())
            }
            BINGET => {
                let index = self.cursor.u8()?;
                self.get(index.into())?;
                self.plain();
                Ok(())
            }
            MEMOIZE => {
                let top = self.top()?;
                self.memo.push(top.0);
                Ok(())
            }
            MARK => {
                self.marks.push(self.stack.len() as u32);
                Ok(())
            }
            BININT1 => {
                let value = self.cursor.u8()?;
                self.shared(arena::small_int(value))
            }
            BININT => {
                let value = self.cursor.i32()?;
                self.stack.push_int(value.into())
            }
            LONG1 => {
                let len = self.cursor.u8()?;
                self.long(len.into())
            }
            EMPTY_DICT => self.open(Node::Dict(Items::EMPTY)),
            EMPTY_LIST => self.open(Node::List(Items::EMPTY)),
            SETITEMS => self.fill(Kind::Dict),
            APPENDS => self.fill(Kind::List),
            _ => self.number(opcode),
        }
    }

    /// An empty container, and what follows most of them: its memo entry and the first mark.
    #[inline]
    fn open(&mut self, node: Node) -> Result<(), Fault> {
        let id = self.arena.push(node)?;
        self.stack.push(id);
        if let [MEMOIZE, MARK, ..] = *self.cursor.rest() {
            self.memo.push(id.0);
            self.marks.push(self.stack.len() as u32);
            self.cursor.skip(2);
        }
        Ok(())
    }

    /// An integer of `len` bytes.
    #[inline]
    pub(super) fn long(&mut self, len: u32) -> Result<(), Fault> {
        let start = self.cursor.position();
        if let (1..=8, Some(eight)) = (len, self.cursor.rest().first_chunk::<8>()) {
            self.cursor.skip(len as usize);
            return self.stack.push_int(narrow(*eight, len));
        }
        let bytes = self.cursor.take(len.into())?;
        self.value(match text::long(bytes) {
            Some(value) => Node::Int(i64::from_le_bytes(value)),
            None => Node::Wide { len, start },
        })
    }

    #[inline]
    pub(super) fn value(&mut self, node: Node) -> Result<(), Fault> {
        let id = self.arena.push(node)?;
        self.shared(id)
    }

    #[inline]
    pub(super) fn shared(&mut self, id: NodeId) -> Result<(), Fault> {
        self.stack.push(id);
        Ok(())
    }

    #[inline]
    pub(super) fn get(&mut self, index: u64) -> Result<(), Fault> {
        match usize::try_from(index).ok().and_then(|index| self.memo.get(index)) {
            Some(&id) if id != UNSET => self.shared(NodeId(id)),
            _ => Err(Fault::Malformed("a memo index that was set before")),
        }
    }

    /// All further keys, words and numbers that follow at once: events consist of them. What is
    /// something else, or wrong, is left to the main loop.
    #[inline]
    fn plain(&mut self) {
        let start = self.cursor.rest();
        let (mut rest, memo) = (start, &self.memo[..]);
        loop {
            rest = match rest {
                [BINGET, index, tail @ ..] => match memo.get(usize::from(*index)) {
                    Some(&id) if id != UNSET => {
                        self.stack.push(NodeId(id));
                        tail
                    }
                    _ => break,
                },
                [LONG_BINGET, a, b, c, d, tail @ ..] => {
                    match memo.get(u32::from_le_bytes([*a, *b, *c, *d]) as usize) {
                        Some(&id) if id != UNSET => self.stack.push(NodeId(id)),
                        _ => break,
                    }
                    tail
                }
                [BININT1, value, tail @ ..] => {
                    self.stack.push(arena::small_int(*value));
                    tail
                }
                [BININT, a, b, c, d, tail @ ..] => {
                    let value = i32::from_le_bytes([*a, *b, *c, *d]);
                    if self.stack.push_int(value.into()).is_err() {
                        break;
                    }
                    tail
                }
                [LONG1, len @ 1..=8, tail @ ..] => {
                    let Some(eight) = tail.first_chunk::<8>() else { break };
                    let Some(tail) = tail.get(usize::from(*len)..) else { break };
                    if self.stack.push_int(narrow(*eight, (*len).into())).is_err() {
                        break;
                    }
                    tail
                }
                _ => break,
            };
        }
        self.cursor.skip(start.len() - rest.len());
    }

    /// All further `LONG_BINGET` that follow at once: stacks consist of nothing else. One that
    /// fails is left to the main loop, which knows its place.
    #[inline]
    fn more_gets(&mut self) {
        let (gets, _) = self.cursor.rest().as_chunks::<5>();
        let memo = &self.memo[..];
        // Counted first: how many there are lets the stack make room once.
        let len = gets.iter().take_while(|[get, ..]| *get == LONG_BINGET).count();
        let ids = gets.iter().take(len).map(|&[_, a, b, c, d]| {
            memo.get(u32::from_le_bytes([a, b, c, d]) as usize).copied().unwrap_or(UNSET)
        });
        let read = self.stack.extend(ids, UNSET);
        self.cursor.skip(5 * read);
    }

    pub(super) fn put(&mut self, index: u64) -> Result<(), Fault> {
        let top = self.top()?;
        if index > self.memo_limit {
            return Err(Fault::TooLarge("a memo index greater than the file has bytes"));
        }
        let index = index as usize;
        if index >= self.memo.len() {
            self.memo.resize(index + 1, UNSET);
        }
        if let Some(place) = self.memo.get_mut(index) {
            *place = top.0;
        }
        Ok(())
    }

    /// Height of the stack down to which an instruction may take: the last open mark.
    #[inline]
    fn floor(&self) -> usize {
        self.marks.last().map_or(0, |&mark| mark as usize)
    }

    #[inline]
    pub(super) fn top(&mut self) -> Result<NodeId, Fault> {
        let from = self.below_top(1)?;
        self.stack.node(from, &mut self.arena)
    }

    pub(super) fn pop(&mut self) -> Result<NodeId, Fault> {
        let top = self.top()?;
        self.stack.truncate(self.stack.len() - 1);
        Ok(top)
    }

    /// Where the top `n` values start.
    #[inline]
    pub(super) fn below_top(&self, n: usize) -> Result<usize, Fault> {
        match self.stack.len().checked_sub(n) {
            Some(from) if from >= self.floor() => Ok(from),
            _ => Err(Fault::Malformed("a value on the stack")),
        }
    }

    /// Closes the last open mark and gives its height.
    #[inline]
    pub(super) fn last_mark(&mut self) -> Result<usize, Fault> {
        let mark = self.marks.pop().ok_or(Fault::Malformed("an open `MARK`"))? as usize;
        if mark <= self.stack.len() { Ok(mark) } else { Err(Fault::Malformed("an open `MARK`")) }
    }

    pub(super) fn gather(&mut self, kind: fn(Items) -> Node) -> Result<(), Fault> {
        let mark = self.last_mark()?;
        self.gather_from(mark, kind)
    }

    /// Turns the values from `from` on into a new container.
    pub(super) fn gather_from(
        &mut self,
        from: usize,
        kind: fn(Items) -> Node,
    ) -> Result<(), Fault> {
        let nodes = self.stack.nodes(from, &mut self.arena)?;
        let items = self.arena.pool(nodes)?;
        self.stack.truncate(from);
        self.value(kind(items))
    }

    #[inline]
    pub(super) fn fill(&mut self, kind: Kind) -> Result<(), Fault> {
        let mark = self.last_mark()?;
        self.fill_from(mark, kind)
    }

    /// Moves the values from `from` on into the container below them, which stays on the stack.
    #[inline]
    pub(super) fn fill_from(&mut self, from: usize, kind: Kind) -> Result<(), Fault> {
        let below = from.checked_sub(1).filter(|&below| below >= self.floor());
        let container = below.map(|at| self.stack.peek(at)).map(|id| (id, self.arena.node(id)));
        let container = match (kind, container) {
            (Kind::List, Some((id, Node::List(_)))) => id,
            (Kind::Set, Some((id, Node::Set(_)))) => id,
            (Kind::Dict, Some((id, Node::Dict(items))))
                if (self.stack.len() - from).is_multiple_of(2) =>
            {
                if items.is_unfilled()
                    && let Some(record) = self.fold.dict(&self.arena, self.stack.pairs(from))
                {
                    self.arena.set_record(id, record);
                    self.stack.truncate(from);
                    return Ok(());
                }
                id
            }
            (Kind::Dict, Some((_, Node::Dict(_)))) => {
                return Err(Fault::Malformed("a value for each key"));
            }
            (Kind::List, _) => return Err(Fault::Malformed("a list below the values")),
            (Kind::Set, _) => return Err(Fault::Malformed("a set below the values")),
            (Kind::Dict, _) => return Err(Fault::Malformed("a dict below the values")),
        };
        if from < self.stack.len() {
            let nodes = self.stack.nodes(from, &mut self.arena)?;
            self.arena.extend(container, nodes)?;
            self.stack.truncate(from);
        }
        Ok(())
    }
}

/// Which container an instruction fills.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    List,
    Set,
    Dict,
}

/// The integer in the first `len` of eight bytes, 1 to 8.
#[inline]
fn narrow(bytes: [u8; 8], len: u32) -> i64 {
    let above = 64 - 8 * len;
    i64::from_le_bytes(bytes) << above >> above
}
