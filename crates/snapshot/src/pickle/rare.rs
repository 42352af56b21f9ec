//! The instructions that a snapshot has few or none of, group by group; each group passes what
//! it does not know to the next, and the last refuses.

use crate::pickle::arena::{self, Items, Node};
use crate::pickle::error::Fault;
use crate::pickle::machine::{Kind, Machine};
use crate::pickle::{Fold, opcode::*, text};

/// Newest protocol there is.
const NEWEST_PROTOCOL: u8 = 5;

impl<F: Fold> Machine<'_, '_, F> {
    pub(super) fn number(&mut self, opcode: u8) -> Result<(), Fault> {
        let node = match opcode {
            NONE => return self.shared(arena::NONE),
            NEWTRUE => return self.shared(arena::TRUE),
            NEWFALSE => return self.shared(arena::FALSE),
            BININT2 => {
                let value = self.cursor.u16()?;
                return self.stack.push_int(value.into());
            }
            BINFLOAT => Node::Float(self.cursor.f64()?),
            INT => match self.cursor.line()? {
                b"00" => return self.shared(arena::FALSE),
                b"01" => return self.shared(arena::TRUE),
                line => self.decimal(line)?,
            },
            LONG => {
                let line = self.cursor.line()?;
                self.decimal(line)?
            }
            LONG4 => {
                let len = self.cursor.u32()?;
                return self.long(len);
            }
            FLOAT => Node::Float(text::float(self.cursor.line()?)?),
            _ => return self.string(opcode),
        };
        self.value(node)
    }

    fn decimal(&mut self, line: &[u8]) -> Result<Node, Fault> {
        let value = text::decimal(line)?;
        Ok(match i64::try_from(value) {
            Ok(value) => Node::Int(value),
            Err(_) => Node::Wide { len: 16, start: self.arena.keep(&value.to_le_bytes()) },
        })
    }

    /// Text and bytes.
    fn string(&mut self, opcode: u8) -> Result<(), Fault> {
        let len = match opcode {
            SHORT_BINUNICODE | SHORT_BINSTRING | SHORT_BINBYTES => self.cursor.u8()?.into(),
            BINUNICODE | BINSTRING | BINBYTES => self.cursor.u32()?.into(),
            BINUNICODE8 | BINBYTES8 | BYTEARRAY8 => self.cursor.u64()?,
            UNICODE | STRING => {
                let line = self.cursor.line()?;
                let decoded =
                    if opcode == STRING { text::quoted(line)? } else { text::raw_unicode(line)? };
                let start = self.arena.keep(&decoded);
                return self.value(Node::Str { len: length(decoded.len() as u64)?, start });
            }
            _ => return self.container(opcode),
        };
        let start = self.cursor.position();
        self.cursor.take(len)?;
        let len = length(len)?;
        self.value(match opcode {
            SHORT_BINBYTES | BINBYTES | BINBYTES8 | BYTEARRAY8 => Node::Bytes { len, start },
            _ => Node::Str { len, start },
        })
    }

    fn container(&mut self, opcode: u8) -> Result<(), Fault> {
        match opcode {
            EMPTY_TUPLE => self.shared(arena::EMPTY_TUPLE),
            EMPTY_SET => self.value(Node::Set(Items::EMPTY)),
            TUPLE => self.gather(Node::Tuple),
            LIST => self.gather(Node::List),
            FROZENSET => self.gather(Node::Set),
            DICT => {
                let mark = self.last_mark()?;
                if !(self.stack.len() - mark).is_multiple_of(2) {
                    return Err(Fault::Malformed("a value for each key"));
                }
                self.gather_from(mark, Node::Dict)
            }
            TUPLE1 | TUPLE2 | TUPLE3 => {
                let len = usize::from(opcode - TUPLE1) + 1;
                let from = self.below_top(len)?;
                self.gather_from(from, Node::Tuple)
            }
            APPEND => {
                let from = self.below_top(1)?;
                self.fill_from(from, Kind::List)
            }
            SETITEM => {
                let from = self.below_top(2)?;
                self.fill_from(from, Kind::Dict)
            }
            ADDITEMS => self.fill(Kind::Set),
            _ => self.housekeeping(opcode),
        }
    }

    /// Stack, memo and frames.
    fn housekeeping(&mut self, opcode: u8) -> Result<(), Fault> {
        match opcode {
            PROTO => match self.cursor.u8()? {
                0..=NEWEST_PROTOCOL => Ok(()),
                _ => Err(Fault::Malformed("a protocol from 0 to 5")),
            },
            FRAME => {
                let len = self.cursor.u64()?;
                self.cursor.expect(len)
            }
            POP if self.marks.last().is_some_and(|&mark| mark as usize == self.stack.len()) => {
                self.last_mark().map(drop)
            }
            POP => self.pop().map(drop),
            POP_MARK => {
                let mark = self.last_mark()?;
                self.stack.truncate(mark);
                Ok(())
            }
            DUP => {
                let top = self.top()?;
                self.shared(top)
            }
            GET => {
                let index = text::index(self.cursor.line()?)?;
                self.get(index)
            }
            PUT => {
                let index = text::index(self.cursor.line()?)?;
                self.put(index)
            }
            BINPUT => {
                let index = self.cursor.u8()?;
                self.put(index.into())
            }
            LONG_BINPUT => {
                let index = self.cursor.u32()?;
                self.put(index.into())
            }
            _ => self.refuse(opcode),
        }
    }

    /// What would import or call: said, not done.
    #[cold]
    fn refuse(&mut self, opcode: u8) -> Result<(), Fault> {
        let asks = match opcode {
            GLOBAL | INST => {
                let (module, name) = (self.cursor.line()?, self.cursor.line()?);
                format!("import `{}.{}`", shown(module), shown(name))
            }
            STACK_GLOBAL => {
                let from = self.below_top(2)?;
                let part = |at| shown(self.arena.text(self.stack.peek(at)).unwrap_or(b"?"));
                format!("import `{}.{}`", part(from), part(from + 1))
            }
            REDUCE | BUILD | OBJ | NEWOBJ | NEWOBJ_EX => "call a function or a class".into(),
            PERSID | BINPERSID => "fetch an object from outside the file".into(),
            EXT1 | EXT2 | EXT4 => "import from the extension registry".into(),
            NEXT_BUFFER | READONLY_BUFFER => "use a buffer from outside the file".into(),
            _ => return Err(Fault::Unknown),
        };
        Err(Fault::Refused(asks.into()))
    }
}

/// A length as nodes hold it.
fn length(len: u64) -> Result<u32, Fault> {
    u32::try_from(len).map_err(|_| Fault::TooLarge("a string of 4 GiB or more"))
}

/// A name from the file, safe to print.
fn shown(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name.get(..60).unwrap_or(name));
    name.escape_debug().to_string()
}
