//! Call stacks as small numbers: a frame on top of another stack.

use crate::hash::Map;

/// Number 0 is the empty stack.
pub type StackNumber = u32;

/// The code that ran, by the address of its object, and the instruction that it had come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Running {
    /// Whoever gives it keeps the object alive, so that the address stays its own.
    pub code: usize,
    /// Index of the last instruction.
    pub at: i32,
}

/// All stacks that were seen.
#[derive(Debug, Default)]
pub struct Stacks {
    numbers: Map<(StackNumber, Running), StackNumber>,
    /// The stack below, and what ran on top of it.
    entries: Vec<(StackNumber, Running)>,
}

impl Stacks {
    /// The number of what ran, outermost first, on top of a known stack; `keep` is told of each that is new.
    pub fn number(
        &mut self,
        walk: impl Iterator<Item = Running>,
        known: StackNumber,
        mut keep: impl FnMut(Running),
    ) -> StackNumber {
        walk.fold(known, |caller, running| {
            *self.numbers.entry((caller, running)).or_insert_with(|| {
                self.entries.push((caller, running));
                keep(running);
                self.entries.len() as StackNumber
            })
        })
    }

    /// The stack below, and what runs on top of it; `None` for the empty stack.
    pub fn entry(&self, number: StackNumber) -> Option<(StackNumber, Running)> {
        self.entries.get((number as usize).checked_sub(1)?).copied()
    }

    /// The stack and all below it, innermost first.
    pub fn down(&self, number: StackNumber) -> impl Iterator<Item = (StackNumber, Running)> {
        let mut next = number;
        std::iter::from_fn(move || {
            let (caller, running) = self.entry(next)?;
            Some((std::mem::replace(&mut next, caller), running))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_what_lies_below() {
        let mut stacks = Stacks::default();
        let [main, train, loss] = [1, 2, 3].map(|code| Running { code, at: 0 });
        let mut kept = Vec::new();
        let mut number = |walk: &[Running], known| {
            stacks.number(walk.iter().copied(), known, |running| kept.push(running.code))
        };
        let whole = number(&[main, train, loss], 0);
        let outer = number(&[main, train], 0);
        assert_eq!(number(&[loss], outer), whole);
        assert_ne!(number(&[Running { at: 4, ..loss }], outer), whole, "another instruction");
        assert_eq!(number(&[], outer), outer);
        assert_eq!(kept, [1, 2, 3, 3]);
        let down: Vec<usize> = stacks.down(whole).map(|(_, running)| running.code).collect();
        assert_eq!(down, [3, 2, 1]);
        assert_eq!(stacks.entry(0), None);
    }
}
