//! Sizes that belong together: gradients and states have the sizes of weights, and casts half of them. What was there
//! before the events has each size once for the weights, and once more for each set of an optimizer's state.

use std::collections::{HashMap, HashSet};

use recording::Category;

use crate::labels::{By, Label, Scene};

/// A gradient has the size of a weight: what a backward pass leaves that has none is kept for another one, or by the
/// script. Only where the whole model was seen to be built.
pub(crate) fn gradients(scene: &Scene<'_>, labels: &mut [Option<Label>]) {
    let weights = sizes_of(scene, labels, Category::Weights);
    if weights.is_empty() || scene.lives.iter().any(|life| life.born.is_none()) {
        return;
    }
    for (life, label) in scene.lives.iter().zip(labels) {
        let is_gradient = label.is_some_and(|it| it.category == Category::Gradients);
        if is_gradient && !weights.contains(&life.size) {
            *label = None;
        }
    }
}

/// What a backward pass frees beside activations.
const LIKE_KEPT: [Category; 3] = [Category::Casts, Category::Unsharded, Category::Communication];

/// Autocast casts inputs too: what has not half the size of a weight is made on the way.
pub(crate) fn casts(scene: &Scene<'_>, labels: &mut [Option<Label>]) {
    let weights = sizes_of(scene, labels, Category::Weights);
    let is_cast = |size: u64| weights.contains(&size.saturating_mul(2));
    let with_frames = scene.lives.iter().zip(&*labels).filter(|(life, _)| life.born.is_some());
    let seen = with_frames.filter_map(|(life, label)| Some(((*label)?.category, life.size)));
    let seen: HashSet<(Category, u64)> =
        seen.filter(|(category, size)| *category != Category::Casts || is_cast(*size)).collect();
    for (life, label) in scene.lives.iter().zip(labels) {
        let Some(known) = label else { continue };
        match known.category {
            Category::Casts if !is_cast(life.size) => known.category = Category::Activations,
            // Older than its frames: what backward passes free may be casts and gathered weights as well, by its size.
            Category::Activations if life.born.is_none() => {
                let others: Vec<Category> = LIKE_KEPT
                    .into_iter()
                    .filter(|category| seen.contains(&(*category, life.size)))
                    .collect();
                let is_kept = seen.contains(&(Category::Activations, life.size));
                match (others.as_slice(), is_kept) {
                    ([], _) => {}
                    ([only], false) => (known.category, known.by) = (*only, By::Sizes),
                    _ => *label = None,
                }
            }
            _ => {}
        }
    }
}

/// What is older than the events and stays to their end. Where no pass runs, staying says nothing.
pub(crate) fn older(scene: &Scene<'_>, labels: &mut [Option<Label>]) {
    if !scene.has_passes {
        return;
    }
    let gradients = in_one_pass(scene, labels);
    replaced(scene, labels, &gradients);
    let mut of_size: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, life) in scene.lives.iter().enumerate() {
        let is_known = labels.get(index).is_some_and(Option::is_some);
        if life.born.is_none() && life.freed.is_none() && !is_known {
            of_size.entry(life.size).or_default().push(index);
        }
    }
    let sets = match gradients.is_empty() {
        true => Sets::by_counts(&of_size),
        false => Sets::by_gradients(&of_size, &gradients, scene.states),
    };
    // Sizes without gradients are of weights that are frozen, whose gradients have other sizes (shards), or of data.
    let mut without = of_size.clone();
    without.retain(|size, _| !gradients.is_empty() && !gradients.contains_key(size));
    let are_shards = Sets::are_shards(&without, scene.states);
    for (size, indices) in of_size {
        let count = indices.len();
        let (each, rest, by) = match without.contains_key(&size) {
            true if are_shards => (sets_of(scene), Some(Category::Optimizer), By::Sizes),
            // Layers have the same sizes; a single block may be anything that the script keeps.
            true if count < LAYERS => continue,
            true => (1, None, By::Age),
            false => (sets.each, sets.rest, if 1 < sets.each { By::Sizes } else { By::Age }),
        };
        let (weights, by) = match gradients.get(&size) {
            Some(count) => (*count, By::Sizes),
            None => (count / each.max(1), by),
        };
        for (place, index) in indices.into_iter().enumerate() {
            let category = match place < weights {
                true => Some(Category::Weights),
                false => rest,
            };
            if let Some(label) = labels.get_mut(index) {
                *label = category.map(|category| Label { category, name: "", by });
            }
        }
    }
}

/// So many blocks of one size are layers of a model.
const LAYERS: usize = 3;

/// Of each size of a weight: the weight, and the states of its optimizer.
fn sets_of(scene: &Scene<'_>) -> usize {
    scene.states.map_or(1, |states| states + 1)
}

/// How often the sizes of a model are there.
struct Sets {
    each: usize,
    /// What all but the first set are; `None` if that cannot be told.
    rest: Option<Category>,
}

impl Sets {
    /// By the gradients of one pass: as many weights as these, and so many states as the optimizer has.
    fn by_gradients(
        of_size: &HashMap<u64, Vec<usize>>,
        gradients: &HashMap<u64, usize>,
        states: Option<usize>,
    ) -> Sets {
        let mut bytes: HashMap<usize, u128> = HashMap::new();
        for (size, found) in of_size {
            if let Some(count) = gradients.get(size).filter(|count| **count != 0) {
                *bytes.entry(found.len() / count).or_insert(0) +=
                    u128::from(*size) * *count as u128;
            }
        }
        let most = bytes.into_iter().max_by_key(|(each, bytes)| (*bytes, *each));
        let each = most.map_or(1, |(each, _)| each.max(1));
        // Copies and buckets have the sizes of weights too.
        let is_state =
            states.is_none_or(|states| states == each - 1) && (states.is_some() || each == 3);
        Sets { each, rest: is_state.then_some(Category::Optimizer) }
    }

    /// Is nearly each of these sizes there as often as weights with such states are?
    fn are_shards(of_size: &HashMap<u64, Vec<usize>>, states: Option<usize>) -> bool {
        let each = states.map_or(1, |states| states + 1);
        let bytes = |fits: &dyn Fn(usize) -> bool| -> u128 {
            let found = of_size.iter().filter(|(_, found)| fits(found.len()));
            found.map(|(size, found)| u128::from(*size) * found.len() as u128).sum()
        };
        1 < each && bytes(&|_| true) * 99 <= bytes(&|count| count.is_multiple_of(each)) * 100
    }

    /// Without gradients: Adam's weights and two states are three of every size. Two of every size may be anything.
    fn by_counts(of_size: &HashMap<u64, Vec<usize>>) -> Sets {
        // Bytes and blocks of sizes that are there a multiple of so many times. Norm layers are many and small: they
        // tell an even number of layers from two sets of all.
        let sums = |of: usize| -> (u128, u128) {
            let found = of_size.iter().filter(|(_, found)| found.len().is_multiple_of(of));
            let sums = found.map(|(size, found)| (u128::from(*size), found.len() as u128));
            sums.fold((0, 0), |sum, (size, count)| (sum.0 + size * count, sum.1 + count))
        };
        let (bytes, blocks) = sums(1);
        let is_multiple = |of: usize| {
            let (fitting, count) = sums(of);
            bytes * 99 <= fitting * 100 && blocks * 9 <= count * 10
        };
        match () {
            () if is_multiple(3) => Sets { each: 3, rest: Some(Category::Optimizer) },
            () if is_multiple(2) => Sets { each: 2, rest: None },
            () => Sets { each: 1, rest: None },
        }
    }
}

/// What an optimizer frees is a state that it replaces, if it has the size of a gradient.
fn replaced(scene: &Scene<'_>, labels: &mut [Option<Label>], gradients: &HashMap<u64, usize>) {
    for (life, label) in scene.lives.iter().zip(labels) {
        let is_state = label.is_some_and(|it| it.category == Category::Optimizer);
        if is_state && life.born.is_none() && !gradients.contains_key(&life.size) {
            *label = None;
        }
    }
}

/// How many gradients of each size a backward pass makes: the one that makes most.
fn in_one_pass(scene: &Scene<'_>, labels: &[Option<Label>]) -> HashMap<u64, usize> {
    let mut counts: HashMap<(u64, Option<u32>), usize> = HashMap::new();
    for (life, label) in scene.lives.iter().zip(labels) {
        if label.is_some_and(|label| label.category == Category::Gradients) {
            let pass = life.born.map(|born| scene.at(Some(born)).pass);
            *counts.entry((life.size, pass)).or_insert(0) += 1;
        }
    }
    let mut most: HashMap<u64, usize> = HashMap::new();
    for ((size, _), count) in counts {
        let known = most.entry(size).or_insert(0);
        *known = count.max(*known);
    }
    most
}

/// Sizes of lives with a category.
fn sizes_of(scene: &Scene<'_>, labels: &[Option<Label>], category: Category) -> HashSet<u64> {
    let all = scene.lives.iter().zip(labels);
    let of = all.filter(|(_, label)| label.is_some_and(|label| label.category == category));
    of.map(|(life, _)| life.size).collect()
}
