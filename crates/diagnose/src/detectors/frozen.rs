//! Frozen layers that keep activations all the same, since something before them is trained.

use std::collections::HashSet;

use recording::Category;

use crate::finding::Finding;
use crate::phrases::modules;
use crate::remedies::{Remedy, computes_in_half, remedies};
use crate::scene::{Claims, Scene, remark};

pub(super) fn detect(scene: &Scene<'_>, _: &mut Claims) -> Vec<Finding> {
    let frozen: HashSet<&str> =
        scene.anatomy.facts.of("frozen").iter().map(String::as_str).collect();
    let members: Vec<usize> = (0..scene.things.len())
        .filter(|index| {
            let thing = &scene.things[*index];
            // Who keeps it says more than who made it: a layer keeps its input.
            let mut users = thing.users.iter();
            thing.is(Category::Activations)
                && !thing.users.is_empty()
                && users.all(|user| frozen.contains(user.module))
        })
        .collect();
    let Some(finding) = remark(scene, &members) else { return Vec::new() };
    vec![Finding {
        title: "frozen layers keep activations".to_owned(),
        explanation: format!(
            "Their own parameters have no gradient, but one flows through them to something before: {}.",
            modules(scene, &members)
        ),
        scales: "batch × what these layers see".to_owned(),
        remedies: of_frozen(scene),
        ..finding
    }]
}

/// They are frozen already: what is left is to compute them again, or in half precision.
fn of_frozen(scene: &Scene<'_>) -> Vec<Remedy> {
    let mut found = remedies!(scene, "checkpoint");
    if !computes_in_half(scene) {
        found.extend(remedies!(scene, "half-frozen"));
    }
    found
}
