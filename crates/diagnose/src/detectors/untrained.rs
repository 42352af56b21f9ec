//! Models that no optimizer trains, and that autograd follows all the same: encoders, teachers, the body under a head.

use std::collections::HashSet;

use recording::Category;

use crate::finding::Finding;
use crate::phrases::modules;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let untrained: HashSet<&str> =
        scene.anatomy.facts.of("untrained").iter().map(String::as_str).collect();
    let members = claims.free(scene, |thing| {
        thing.is(Category::Activations)
            && !thing.users.is_empty()
            && thing.users.iter().all(|user| untrained.contains(user.module))
    });
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    vec![Finding {
        title: format!("autograd follows what no optimizer trains {}", modules(scene, &members))
            .trim_end()
            .to_owned(),
        explanation: format!(
            "{} tensors are kept to compute gradients of parameters that no optimizer has. These gradients are \
             made as well, and nobody uses them.",
            members.len()
        ),
        scales: "batch × what these layers see".to_owned(),
        remedies: remedies!(scene, "not-followed"),
        ..finding
    }]
}
