//! Batches of several steps on the card at once: the next one is brought before the last one is dropped.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Category, Phase};

use crate::finding::Finding;
use crate::phrases::{place, plural};
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let mut alike: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    let inputs =
        claims.free(scene, |thing| thing.is(Category::Inputs) && !thing.tensor.dtype.is_empty());
    for index in inputs {
        let thing = &scene.things[index];
        alike.entry((thing.line(), &thing.tensor.dtype, thing.shape())).or_default().push(index);
    }
    // What was there before the first step belongs to none.
    let step = |index: &usize| match scene.things[*index].tensor.born {
        born if born.phase == Some(Phase::Construction) => 0,
        born => born.step,
    };
    let newest = |group: &[usize]| group.iter().map(step).max();
    let earlier = alike
        .values()
        .flat_map(|group| group.iter().copied().filter(|index| Some(step(index)) != newest(group)));
    let members: Vec<usize> = earlier.collect();
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let steps: BTreeSet<u64> = members.iter().map(|index| u64::from(step(index))).collect();
    let number = steps.len() as u64;
    vec![Finding {
        title: format!("inputs of {number} more step{} on the card", plural(number)),
        explanation: format!(
            "What is made at {} is there for several steps at once: the next batch is brought before the last one \
             is dropped, by a prefetcher, or since a variable still holds it.",
            place(scene.things[members[0]].line())
        ),
        scales: "batch".to_owned(),
        remedies: remedies!(scene, "drop-batch", "batch"),
        ..finding
    }]
}
