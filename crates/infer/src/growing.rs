//! Keys and values that inference keeps by itself: the same line makes them longer, by the same with every token.

use std::collections::{BTreeMap, HashMap};

use recording::{Category, StackId, TextId};

use crate::labels::{By, Label, Scene};
use crate::lives::Life;

/// So many lengths must follow each other: two may differ by chance.
const LENGTHS: usize = 3;

/// What one line makes: the event at which each size came first, smallest size first.
struct Growth {
    sizes: BTreeMap<u64, usize>,
    /// By how much each is larger than the one before.
    step: u64,
}

impl Growth {
    /// `None` if these lives do not grow evenly, or go before a longer one is there: those are only worked with.
    fn of(lives: &[Life]) -> Option<Growth> {
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        for life in lives {
            // Longer ones come later.
            let longest = sizes.last_key_value().map_or(0, |(size, _)| *size);
            if life.size < longest {
                return None;
            }
            sizes.entry(life.size).or_insert(life.born?);
        }
        let pairs = || sizes.iter().zip(sizes.iter().skip(1));
        let step = pairs().next().map(|((one, _), (next, _))| next - one)?;
        let is_even = pairs().all(|((one, _), (next, _))| next - one == step);
        let growth = Growth { sizes, step };
        let is_kept = lives.iter().all(|life| growth.is_replaced(life));
        (LENGTHS <= growth.sizes.len() && is_even && is_kept).then_some(growth)
    }

    /// Does it go only when the next longer one is there?
    fn is_replaced(&self, life: &Life) -> bool {
        let longer = life.size.checked_add(self.step).and_then(|size| self.sizes.get(&size));
        match (life.freed, longer) {
            (Some(freed), Some(longer)) => *longer < freed,
            (_, longer) => longer.is_none(),
        }
    }

    /// Is it what the first of these replace, which another line made?
    fn replaces(&self, life: &Life) -> bool {
        let longer = life.size.checked_add(self.step).and_then(|size| self.sizes.get(&size));
        longer.is_some_and(|longer| life.born < Some(*longer)) && self.is_replaced(life)
    }
}

/// Names caches that grow.
pub(crate) fn caches(scene: &Scene<'_>, labels: &mut [Option<Label>]) {
    if scene.trains {
        return;
    }
    let mut by_line: HashMap<StackId, Vec<Life>> = HashMap::new();
    for (index, life) in scene.lives.iter().enumerate() {
        let stack = scene.stacks.get(index).copied().flatten();
        let is_inside = life.born.is_some() && scene.reading(index).module != TextId(0);
        if let Some(stack) = stack.filter(|_| is_inside) {
            by_line.entry(stack).or_default().push(*life);
        }
    }
    let grown = by_line.iter().filter_map(|(stack, lives)| Some((*stack, Growth::of(lives)?)));
    let grown: HashMap<StackId, Growth> = grown.collect();
    for (index, (life, label)) in scene.lives.iter().zip(labels).enumerate() {
        let stack = scene.stacks.get(index).copied().flatten();
        let is_inside = life.born.is_none() || scene.reading(index).module != TextId(0);
        let is_cache = stack.is_some_and(|stack| grown.contains_key(&stack))
            || (is_inside && grown.values().any(|growth| growth.replaces(life)));
        let is_named = label.is_some_and(|label| label.category == Category::KvCache);
        if is_cache && !is_named {
            *label = Some(Label { category: Category::KvCache, name: "", by: By::Sizes });
        }
    }
}

#[cfg(test)]
mod tests {
    use recording::OwnerId;

    use super::*;

    fn life(size: u64, born: usize, freed: usize) -> Life {
        let (born, freed) = (Some(born), Some(freed).filter(|freed| *freed != 0));
        Life { address: 0, size, born, freed, owner: OwnerId(0), pool: (0, 0) }
    }

    #[test]
    fn only_what_grows_evenly_and_stays_is_a_cache() {
        let cache = [life(512, 2, 5), life(640, 4, 7), life(768, 6, 0)];
        let growth = Growth::of(&cache).unwrap();
        assert!(
            growth.replaces(&life(384, 1, 3)),
            "made by another line, and replaced by the first"
        );
        assert!(!growth.replaces(&life(384, 1, 0)), "never replaced");
        assert!(Growth::of(&cache[..2]).is_none(), "two lengths");
        let scores = [life(512, 0, 1), life(640, 2, 3), life(768, 4, 5)];
        assert!(Growth::of(&scores).is_none(), "freed before a longer one is made");
        let batches = [life(512, 0, 3), life(700, 2, 5), life(768, 4, 0)];
        assert!(Growth::of(&batches).is_none(), "uneven");
    }
}
