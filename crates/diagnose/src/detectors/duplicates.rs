//! Copies whose original is still in memory: clone, contiguous, cat, casts. A view is no copy and takes nothing.

use recording::Category;

use crate::finding::Finding;
use crate::phrases::place;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing, remark};

/// Operators that only copy.
const COPIES: [&str; 13] = [
    "clone",
    "contiguous",
    "to",
    "float",
    "half",
    "bfloat16",
    "double",
    "type",
    "reshape",
    "repeat",
    "flatten",
    "_to_copy",
    "copy",
];

/// Operators that join.
const JOINS: [&str; 5] = ["cat", "concat", "concatenate", "hstack", "stack"];

pub(super) fn detect(scene: &Scene<'_>, _: &mut Claims) -> Vec<Finding> {
    let copies: Vec<usize> = (0..scene.things.len())
        .filter(|index| {
            let thing = &scene.things[*index];
            let is_copy = COPIES.contains(&thing.operator()) && has_source(scene, *index);
            let is_join = JOINS.contains(&thing.operator()) && has_parts(scene, *index);
            // Rounded to eight bits for a product, it does not hold the same numbers.
            let is_rounded = thing.tensor.dtype.starts_with("float8");
            thing.is_of_a_pass() && !is_rounded && (is_copy || is_join)
        })
        .collect();
    let Some(finding) = remark(scene, &copies) else { return Vec::new() };
    let count = copies.len() as u64;
    let first = &scene.things[copies[0]];
    vec![Finding {
        title: format!(
            "{count} redundant cop{} (the original is still in memory)",
            if count == 1 { "y" } else { "ies" }
        ),
        explanation: format!(
            "The largest is made by {} at {}. Each holds numbers that other tensors hold at this moment as \
             well, in another dtype, order or place.",
            first.operator(),
            place(first.line())
        ),
        scales: "as its sources".to_owned(),
        remedies: remedies!(scene, "remove-copy"),
        ..finding
    }]
}

/// Activations and inputs that could be what another was made of: they were there before it.
fn candidates<'a>(scene: &'a Scene<'_>, of: usize) -> impl Iterator<Item = &'a Thing<'a>> {
    let kinds = [Category::Activations, Category::Inputs, Category::Temporaries];
    let made = scene.things[of].tensor.made;
    let earlier = scene.things.iter().filter(move |thing| thing.tensor.made < made);
    earlier.filter(move |thing| kinds.contains(&thing.tensor.category))
}

/// A tensor with the same sizes in some order, made by something else in the same phase of the step.
fn has_source(scene: &Scene<'_>, index: usize) -> bool {
    let copy = &scene.things[index];
    let sorted = |thing: &Thing<'_>| {
        let mut sizes: Vec<u64> = thing.shape().iter().copied().filter(|size| *size != 1).collect();
        sizes.sort_unstable();
        sizes
    };
    let own = sorted(copy);
    !own.is_empty()
        && candidates(scene, index).any(|other| {
            is_near(copy, other)
                && (!other.is(Category::Inputs) || is_of_an_input(scene, copy))
                && !COPIES.contains(&other.operator())
                && copy.elements() == other.elements()
                && (sorted(other) == own)
        })
}

/// Was something copied there that no function had made?
fn is_of_an_input(scene: &Scene<'_>, copy: &Thing<'_>) -> bool {
    let module = if copy.module().is_empty() { "-" } else { copy.module() };
    let elements = copy.elements().unwrap_or_default();
    scene.anatomy.facts.has("copied", &format!("module={module} elements={elements}"))
}

/// Tensors that differ from it in one size only, and that sum to it there.
fn has_parts(scene: &Scene<'_>, index: usize) -> bool {
    let joined = &scene.things[index];
    let shape = joined.shape();
    (0..shape.len()).any(|axis| {
        let mut sizes: Vec<u64> = candidates(scene, index)
            .filter(|other| is_near(joined, other) && other.tensor.dtype == joined.tensor.dtype)
            .filter(|other| other.shape().len() == shape.len())
            .filter(|other| {
                let pairs = other.shape().iter().zip(shape).enumerate();
                pairs.clone().all(|(at, (a, b))| at == axis || a == b)
                    && other.shape()[axis] < shape[axis]
            })
            .map(|other| other.shape()[axis])
            .collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.truncate(16);
        two_or_three_sum_to(&sizes, shape[axis])
    })
}

fn two_or_three_sum_to(sizes: &[u64], wanted: u64) -> bool {
    sizes.iter().enumerate().any(|(first, a)| {
        sizes[first + 1..].iter().enumerate().any(|(second, b)| {
            let two = a.saturating_add(*b);
            two == wanted
                || sizes[first + second + 2..].iter().any(|c| two.saturating_add(*c) == wanted)
        })
    })
}

/// Of the same pass, in modules of one parent.
fn is_near(a: &Thing<'_>, b: &Thing<'_>) -> bool {
    let parent = |path: &'_ str| path.rsplit_once('.').map_or("", |(above, _)| above).to_owned();
    let (one, other) = (a.module(), b.module());
    let is_related = one == other
        || parent(one) == parent(other)
        || parent(one) == other
        || parent(other) == one
        || other.starts_with(&format!("{one}."))
        || one.is_empty()
        || !one.contains('.');
    a.tensor.born == b.tensor.born && is_related || b.is(Category::Inputs)
}
