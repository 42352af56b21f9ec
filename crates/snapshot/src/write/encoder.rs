//! The instructions of protocol 4; what is shared is written once and fetched from the memo.

use crate::keys::Word;
use crate::pickle::opcode::*;
use crate::tables::{FrameId, StackId, StringId, Tables};

/// Items between two `APPENDS` or `SETITEMS`, as CPython's pickler has it.
const BATCH: usize = 1000;

/// A pickle being written.
pub(super) struct Encoder<'a> {
    out: Vec<u8>,
    tables: &'a Tables,
    /// Next memo index.
    next: u32,
    /// Memo indices of what has been written.
    words: [Option<u32>; Word::COUNT],
    strings: Vec<Option<u32>>,
    frames: Vec<Option<u32>>,
    stacks: Vec<Option<u32>>,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(tables: &'a Tables) -> Self {
        Self {
            out: vec![PROTO, 4],
            tables,
            next: 0,
            words: [None; Word::COUNT],
            strings: vec![None; tables.strings.len()],
            frames: vec![None; tables.frames.len()],
            stacks: vec![None; tables.stack_count()],
        }
    }

    /// Ends the pickle.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.push(STOP);
        self.out
    }

    /// A dict; `fill` writes key, value, key, value.
    pub(super) fn dict(&mut self, fill: impl FnOnce(&mut Self)) {
        self.out.extend([EMPTY_DICT, MARK]);
        fill(self);
        self.out.push(SETITEMS);
    }

    /// A list of items, each written by `item`.
    pub(super) fn list<T>(&mut self, items: &[T], item: impl Fn(&mut Self, &T)) {
        self.out.push(EMPTY_LIST);
        self.append(items, item);
    }

    fn append<T>(&mut self, items: &[T], item: impl Fn(&mut Self, &T)) {
        for batch in items.chunks(BATCH) {
            self.out.push(MARK);
            batch.iter().for_each(|value| item(self, value));
            self.out.push(APPENDS);
        }
    }

    /// A key or constant.
    pub(super) fn key(&mut self, word: Word) {
        match self.words.get(word as usize).copied().flatten() {
            Some(memo) => self.get(memo),
            None => {
                self.text(word.text());
                let memo = self.memoize();
                remember(&mut self.words, word as usize, memo);
            }
        }
    }

    /// A string of the tables.
    pub(super) fn string(&mut self, id: StringId) {
        match self.strings.get(id.index()).copied().flatten() {
            Some(memo) => self.get(memo),
            None => {
                self.text(self.tables.string(id));
                let memo = self.memoize();
                remember(&mut self.strings, id.index(), memo);
            }
        }
    }

    fn frame(&mut self, id: FrameId) {
        if let Some(memo) = self.frames.get(id.index()).copied().flatten() {
            return self.get(memo);
        }
        let frame = self.tables.frame(id);
        self.out.push(EMPTY_DICT);
        let memo = self.memoize();
        remember(&mut self.frames, id.index(), memo);
        self.out.push(MARK);
        if let Some(frame) = frame {
            self.key(Word::Name);
            self.string(frame.name);
            self.key(Word::Filename);
            self.string(frame.filename);
            self.int_at(Word::Line, frame.line.into());
        }
        self.out.push(SETITEMS);
    }

    /// A stack: a list of frames.
    pub(super) fn stack(&mut self, id: StackId) {
        if let Some(memo) = self.stacks.get(id.index()).copied().flatten() {
            return self.get(memo);
        }
        self.out.push(EMPTY_LIST);
        let memo = self.memoize();
        remember(&mut self.stacks, id.index(), memo);
        let tables = self.tables;
        self.append(tables.stack(id), |out, &frame| out.frame(frame));
    }

    /// A string that is not shared.
    pub(super) fn text(&mut self, text: &str) {
        match u8::try_from(text.len()) {
            Ok(len) => self.out.extend([SHORT_BINUNICODE, len]),
            Err(_) => {
                self.out.push(BINUNICODE8);
                self.out.extend((text.len() as u64).to_le_bytes());
            }
        }
        self.out.extend(text.as_bytes());
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.out.push(if value { NEWTRUE } else { NEWFALSE });
    }

    pub(super) fn float(&mut self, value: f64) {
        self.out.push(BINFLOAT);
        self.out.extend(value.to_be_bytes());
    }

    pub(super) fn int(&mut self, value: i64) {
        match (u8::try_from(value), u16::try_from(value), i32::try_from(value)) {
            (Ok(value), _, _) => self.out.extend([BININT1, value]),
            (_, Ok(value), _) => {
                self.out.push(BININT2);
                self.out.extend(value.to_le_bytes());
            }
            (_, _, Ok(value)) => {
                self.out.push(BININT);
                self.out.extend(value.to_le_bytes());
            }
            _ => {
                self.out.extend([LONG1, 8]);
                self.out.extend(value.to_le_bytes());
            }
        }
    }

    /// An int; what needs the 64th bit gets a ninth byte for its sign.
    pub(super) fn unsigned(&mut self, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.int(value),
            Err(_) => {
                self.out.extend([LONG1, 9]);
                self.out.extend(value.to_le_bytes());
                self.out.push(0);
            }
        }
    }

    pub(super) fn int_at(&mut self, key: Word, value: u64) {
        self.key(key);
        self.unsigned(value);
    }

    /// A tuple of two ints.
    pub(super) fn pair(&mut self, first: u64, second: u64) {
        self.unsigned(first);
        self.unsigned(second);
        self.out.push(TUPLE2);
    }

    fn get(&mut self, memo: u32) {
        match u8::try_from(memo) {
            Ok(memo) => self.out.extend([BINGET, memo]),
            Err(_) => {
                self.out.push(LONG_BINGET);
                self.out.extend(memo.to_le_bytes());
            }
        }
    }

    fn memoize(&mut self) -> u32 {
        self.out.push(MEMOIZE);
        self.next += 1;
        self.next - 1
    }
}

/// Notes the memo index of a row; ids beyond the tables have none.
fn remember(memos: &mut [Option<u32>], row: usize, memo: u32) {
    if let Some(place) = memos.get_mut(row) {
        *place = Some(memo);
    }
}
