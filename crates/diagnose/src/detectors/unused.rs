//! Parameters that no gradient reaches.

use std::collections::HashSet;

use recording::Category;

use crate::finding::Finding;
use crate::phrases::plural;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let names: HashSet<&str> =
        scene.anatomy.facts.of("unused").iter().map(String::as_str).collect();
    // Without a gradient in the first step; a later one may have brought it, or the optimizer's state.
    let things = scene.things.iter();
    let trained: HashSet<&str> = things
        .filter(|thing| thing.is(Category::Gradients) || thing.is(Category::Optimizer))
        .filter_map(|thing| Some(thing.tensor.name.split_once(" of ")?.1))
        .collect();
    let members = claims.free(scene, |thing| {
        let name = thing.tensor.name.as_str();
        thing.is(Category::Weights) && names.contains(name) && !trained.contains(name)
    });
    let Some(finding) = claims.finding(scene, &members) else {
        return Vec::new();
    };
    let count = members.len() as u64;
    vec![Finding {
        title: format!("{count} parameter{} without a gradient", plural(count)),
        explanation: "They are given to the optimizer and may have a gradient, but the backward pass \
                      reached none of them. They take no gradient and no optimizer state; every copy \
                      of the model has them again."
            .to_owned(),
        scales: "parameters".to_owned(),
        remedies: remedies!(scene, "remove-unused"),
        ..finding
    }]
}
