//! All that is known of the script.

use recording::Category;

use crate::hash::Map;
use crate::note::Notes;
use crate::parts::Parts;
use crate::saved::Saved;
use crate::stacks::Stacks;
use crate::text_table::{Word, Words};

/// A function of torch.
#[derive(Debug, Default)]
pub struct Function {
    /// As reports name it.
    pub name: String,
    /// Whether its results are data that the script brings to the card.
    pub is_factory: bool,
    /// Whether its arguments are facts.
    pub is_looked_at: bool,
    /// Whether it has allocated something.
    pub allocates: bool,
}

/// What distributed training is doing, and what its tensors are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// What allocations in it are, if that is known.
    pub name: Option<(Category, Word)>,
    /// What reports call it.
    pub area: Word,
}

/// Parameters that autocast may cast in a part: bytes of the cast, and the parameter's id.
pub type Casts = Map<u64, Vec<(u64, usize)>>;

/// Plain data, so that no code of Python's can run while it is locked.
#[derive(Debug)]
pub struct State {
    /// What runs, and ran.
    pub parts: Parts,
    /// Where it was called.
    pub stacks: Stacks,
    /// Texts by number.
    pub words: Words,
    /// What was said of addresses.
    pub notes: Notes,
    /// What autograd keeps.
    pub saved: Saved,
    /// By the serial number of the part.
    pub casts: Casts,
    /// Number 0 is no function.
    pub functions: Vec<Function>,
    /// Numbered from 1 on.
    area_list: Vec<Area>,
    /// The area in which a part began, by its serial number.
    areas: Map<u64, u32>,
}

impl Default for State {
    fn default() -> State {
        State {
            parts: Parts::default(),
            stacks: Stacks::default(),
            words: Words::default(),
            notes: Notes::default(),
            saved: Saved::default(),
            casts: Casts::default(),
            functions: vec![Function::default()],
            area_list: Vec::new(),
            areas: Map::default(),
        }
    }
}

impl State {
    /// The number of an area, new or known.
    pub fn area(&mut self, area: Area) -> u32 {
        let known = self.area_list.iter().position(|known| *known == area);
        let at = known.unwrap_or_else(|| {
            self.area_list.push(area);
            self.area_list.len() - 1
        });
        at as u32 + 1
    }

    /// A part has begun in an area; 0 is none.
    pub fn begin_in_area(&mut self, serial: u64, area: u32) {
        if area != 0 {
            self.areas.insert(serial, area);
        }
    }

    /// The area in which a part began.
    pub(crate) fn area_of(&self, serial: u64) -> Option<Area> {
        let number = *self.areas.get(&serial)? as usize;
        self.area_list.get(number.checked_sub(1)?).copied()
    }

    /// The parameter whose cast has this size in this part; it is then no longer waited for.
    pub(crate) fn take_cast(&mut self, serial: u64, size: u64) -> Option<usize> {
        let waiting = self.casts.get_mut(&serial)?;
        let at = waiting.iter().position(|(bytes, _)| *bytes == size)?;
        Some(waiting.remove(at).1)
    }

    /// What happened before the part `cut` has been written: it is forgotten, but for the parts that were `running`
    /// then, of which more may come.
    pub fn forget(&mut self, cut: u64, running: &[u64]) {
        let is_left = |serial: &u64| *serial >= cut || running.contains(serial);
        self.areas.retain(|serial, _| is_left(serial));
        self.casts.retain(|serial, _| is_left(serial));
        self.parts.forget(running);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_areas_have_one_number() {
        let mut state = State::default();
        let word = state.words.of("FSDP");
        let plain = Area { name: None, area: word };
        let named = Area { name: Some((Category::Communication, word)), area: word };
        assert_eq!([plain, named, plain].map(|area| state.area(area)), [1, 2, 1]);
        state.begin_in_area(7, 2);
        state.begin_in_area(8, 0);
        assert_eq!((state.area_of(7), state.area_of(8)), (Some(named), None));
    }

    #[test]
    fn a_cast_is_found_by_its_size_once() {
        let mut state = State::default();
        state.casts.insert(5, vec![(100, 0xa), (200, 0xb), (100, 0xc)]);
        let taken = [100, 100, 100, 200].map(|size| state.take_cast(5, size));
        assert_eq!(taken, [Some(0xa), Some(0xc), None, Some(0xb)]);
        assert_eq!(state.take_cast(6, 100), None);
    }

    #[test]
    fn what_is_written_is_forgotten_unless_it_runs() {
        let mut state = State::default();
        let word = state.words.of("FSDP");
        let area = state.area(Area { name: None, area: word });
        for serial in 1..=4 {
            state.begin_in_area(serial, area);
            state.casts.insert(serial, vec![(1, 1)]);
        }
        state.forget(4, &[2]);
        let left = |serial| (state.area_of(serial).is_some(), state.casts.contains_key(&serial));
        assert_eq!(
            [1, 2, 3, 4].map(left),
            [(false, false), (true, true), (false, false), (true, true)]
        );
    }
}
