//! What is said of addresses: which tensor lies there, and what it is. No tensor is held.

use recording::{Category, Phase};

use crate::hash::Map;
use crate::text_table::Word;

/// Something said of an address, or of the time since a part began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The time since the part belongs to this phase of this step.
    Phase {
        phase: Phase,
        /// From 1 on.
        step: u32,
    },
    /// What lies there has this name.
    Name {
        /// What kind of memory it is.
        category: Category,
        word: Word,
    },
    /// A tensor of this form lies there.
    Tensor {
        /// As `float32[32, 64]`.
        word: Word,
    },
    /// It is alive since this holds it.
    Holder { word: Word },
    /// It belongs to this area of distributed training.
    Area { word: Word },
    /// Streams were done with a deferred free.
    Idle { free: u32 },
}

/// It comes after the events of the part that it is made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The part that it follows.
    pub serial: u64,
    pub device: u16,
    /// Where; 0 if it is said of a time.
    pub address: u64,
    /// What is said.
    pub what: What,
}

/// All notes that are not written yet.
#[derive(Debug, Default)]
pub struct Notes {
    /// In the order in which they were made, which is not that of their parts.
    pub list: Vec<Note>,
    /// What the allocation at an address was called last, and in which part.
    named: Map<u64, (Word, u64)>,
}

impl Notes {
    /// Takes the notes made before the part `cut`, in order of the parts that they follow. What another thread has said
    /// since may be of an allocation that is not in the history yet.
    pub fn take(&mut self, cut: u64) -> Vec<Note> {
        let is_taken = |note: &mut Note| note.serial < cut;
        let mut taken: Vec<Note> = self.list.extract_if(.., is_taken).collect();
        taken.sort_by_key(|note| note.serial);
        taken
    }

    /// Whether this is not what was said of the allocation at this address since the part `since`; from now on it is.
    pub fn is_news(&mut self, address: u64, word: Word, serial: u64, since: u64) -> bool {
        let known = self.named.get(&address);
        let is_news = known.is_none_or(|(known, at)| *known != word || *at < since);
        if is_news {
            self.named.insert(address, (word, serial));
        }
        is_news
    }

    /// Whether what lies at this address has a name.
    pub(crate) fn is_named(&self, address: u64) -> bool {
        self.named.contains_key(&address)
    }

    /// Something is allocated at an address: what was said of it before the part `position` was said of another.
    pub(crate) fn allocate(&mut self, address: u64, position: u64) {
        if self.named.get(&address).is_some_and(|(_, at)| *at < position) {
            self.named.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(serial: u64, address: u64) -> Note {
        Note { serial, device: 0, address, what: What::Idle { free: 0 } }
    }

    #[test]
    fn notes_are_taken_up_to_a_cut_in_order_of_their_parts() {
        // Phases are known when they are over: their notes follow parts of long ago.
        let list = vec![note(2, 0xa), note(4, 0xb), note(1, 0xc), note(2, 0xd)];
        let mut said = Notes { list, ..Notes::default() };
        let taken: Vec<u64> = said.take(4).iter().map(|note| note.address).collect();
        assert_eq!(taken, [0xc, 0xa, 0xd], "equal ones stay in the order in which they were made");
        assert_eq!(said.list, [note(4, 0xb)]);
    }

    #[test]
    fn the_same_is_said_once_of_each_allocation() {
        let mut said = Notes::default();
        let (weight, gradient) = (1, 2);
        assert!(said.is_news(0xa, weight, 5, 0));
        assert!(!said.is_news(0xa, weight, 6, 0));
        assert!(said.is_news(0xa, gradient, 7, 0), "another name");
        assert!(said.is_news(0xa, gradient, 9, 8), "said before the step began");
        // What the name was said of is gone if the address is given out again later.
        said.allocate(0xa, 9);
        assert!(said.is_named(0xa));
        said.allocate(0xa, 10);
        assert!(!said.is_named(0xa));
    }
}
