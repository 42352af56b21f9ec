//! Strings, frames and stacks, each kept once and named by a small id.
//!
//! A snapshot names the same frames millions of times; [`Tables`] holds each once, and
//! [`Interner`] finds the id of what is already there.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// The id of the row at `index`; saturates at the last possible row.
            pub fn new(index: usize) -> Self {
                let row = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
                Self(NonZeroU32::new(row).unwrap_or(NonZeroU32::MAX))
            }

            /// The row in its table.
            pub fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }
    )*};
}

ids! {
    /// A string in [`Tables::strings`].
    StringId,
    /// A frame in [`Tables::frames`].
    FrameId,
    /// A stack in [`Tables`], read with [`Tables::stack`].
    StackId,
}

/// One line of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    pub name: StringId,
    /// Source file; `??` or empty for C++ without symbols.
    pub filename: StringId,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
}

/// Strings, frames and stacks of one snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tables {
    /// All strings, each once.
    pub strings: Vec<Box<str>>,
    /// All frames, each once.
    pub frames: Vec<Frame>,
    /// The frames of all stacks, one stack after the other.
    stacked: Vec<FrameId>,
    /// End of each stack in `stacked`.
    ends: Vec<u32>,
}

impl Tables {
    /// The text of a string; empty for an id of another snapshot that is too large.
    pub fn string(&self, id: StringId) -> &str {
        self.strings.get(id.index()).map(AsRef::as_ref).unwrap_or_default()
    }

    /// A frame; `None` for an id of another snapshot that is too large.
    pub fn frame(&self, id: FrameId) -> Option<Frame> {
        self.frames.get(id.index()).copied()
    }

    /// The frames of a stack, innermost first.
    pub fn stack(&self, id: StackId) -> &[FrameId] {
        let end_of = |row: usize| self.ends.get(row).map_or(0, |&end| end as usize);
        let start = id.index().checked_sub(1).map_or(0, end_of);
        self.stacked.get(start..end_of(id.index())).unwrap_or_default()
    }

    /// Number of different stacks.
    pub fn stack_count(&self) -> usize {
        self.ends.len()
    }
}

/// Fills [`Tables`] so that nothing is in them twice.
#[derive(Default)]
pub struct Interner {
    tables: Tables,
    // Rows by hash. The hash is seeded anew in each process, so that no file can be made to
    // collide; should two rows ever share one, the later is kept without being found again.
    hasher: RandomState,
    strings: HashMap<u64, u32>,
    frames: HashMap<Frame, FrameId>,
    stacks: HashMap<u64, u32>,
}

impl Interner {
    /// What has been kept so far.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The id of a string.
    pub fn string(&mut self, text: &str) -> StringId {
        let next = self.tables.strings.len();
        let row = *self.strings.entry(self.hasher.hash_one(text)).or_insert(next as u32) as usize;
        // A row that is `next` is not there yet.
        if self.tables.strings.get(row).is_some_and(|known| **known == *text) {
            return StringId::new(row);
        }
        self.tables.strings.push(text.into());
        StringId::new(next)
    }

    /// The id of a frame.
    pub fn frame(&mut self, frame: Frame) -> FrameId {
        *self.frames.entry(frame).or_insert_with(|| {
            self.tables.frames.push(frame);
            FrameId::new(self.tables.frames.len() - 1)
        })
    }

    /// The id of a stack, frames innermost first.
    pub fn stack(&mut self, frames: &[FrameId]) -> StackId {
        let next = self.tables.ends.len();
        let row = *self.stacks.entry(self.hasher.hash_one(frames)).or_insert(next as u32) as usize;
        if row != next && self.tables.stack(StackId::new(row)) == frames {
            return StackId::new(row);
        }
        self.tables.stacked.extend_from_slice(frames);
        self.tables.ends.push(u32::try_from(self.tables.stacked.len()).unwrap_or(u32::MAX));
        StackId::new(next)
    }

    /// The filled tables.
    pub fn finish(self) -> Tables {
        self.tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_things_have_one_id() {
        let mut interner = Interner::default();
        let [a, b, again] = ["a", "b", "a"].map(|text| interner.string(text));
        assert_eq!((a, a == b), (again, false));
        let frame = Frame { name: a, filename: b, line: 3 };
        let (first, second) = (interner.frame(frame), interner.frame(Frame { line: 4, ..frame }));
        let empty = interner.stack(&[]);
        let deep = interner.stack(&[first, second]);
        assert_eq!(interner.stack(&[first, second]), deep);
        assert_eq!(interner.stack(&[]), empty);
        let tables = interner.finish();
        assert_eq!(tables.stack(deep), [first, second]);
        assert_eq!(tables.stack(empty), []);
        assert_eq!((tables.strings.len(), tables.frames.len(), tables.stack_count()), (2, 2, 2));
    }

    #[test]
    fn foreign_ids_give_nothing() {
        let tables = Tables::default();
        assert_eq!(tables.string(StringId::new(7)), "");
        assert_eq!(tables.frame(FrameId::new(7)), None);
        assert_eq!(tables.stack(StackId::new(7)), []);
    }
}
