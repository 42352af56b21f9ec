//! What is said of addresses: which tensor lies there, and what it is. No tensor is held.

use recording::{Category, Phase};

use crate::hash::Map;
use crate::words::Word;

/// Something said of an address, or of the time since a part began.
#[derive(Clone, Copy)]
pub(crate) enum What {
    Phase { phase: Phase, step: u32 },
    Name { category: Category, word: Word },
    Tensor { word: Word },
    Holder { word: Word },
    Area { word: Word },
    Idle { free: u32 },
}

/// It comes after the events of the part that it is made in.
#[derive(Clone, Copy)]
pub(crate) struct Note {
    pub(crate) serial: u64,
    pub(crate) device: u16,
    pub(crate) address: u64,
    pub(crate) what: What,
}

#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) list: Vec<Note>,
    /// What the allocation at an address was called last, and in which part.
    pub(crate) named: Map<u64, (Word, u64)>,
}

impl Notes {
    /// Takes the notes made before the part `cut`, in order of the parts that they follow. What another thread has said
    /// since may be of an allocation that is not in the history yet.
    pub(crate) fn take(&mut self, cut: u64) -> Vec<Note> {
        let is_taken = |note: &mut Note| note.serial < cut;
        let mut taken: Vec<Note> = self.list.extract_if(.., is_taken).collect();
        taken.sort_by_key(|note| note.serial);
        taken
    }

    /// Whether this is not what was said of the allocation at this address since the part `since`; from now on it is.
    pub(crate) fn is_news(&mut self, address: u64, word: Word, serial: u64, since: u64) -> bool {
        let known = self.named.get(&address);
        let is_news = known.is_none_or(|(known, at)| *known != word || *at < since);
        if is_news {
            self.named.insert(address, (word, serial));
        }
        is_news
    }
}
