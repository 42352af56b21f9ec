//! Norm layers that run in float32 under autocast, and keep that.

use recording::Category;

use crate::finding::Finding;
use crate::phrases::modules;
use crate::roles::{Role, role};
use crate::scene::{Claims, Scene, remark};

pub(super) fn detect(scene: &Scene<'_>, _: &mut Claims) -> Vec<Finding> {
    let Some(dtype) = scene.anatomy.facts.of("autocast").first() else { return Vec::new() };
    let is_norm = |role: Role| matches!(role, Role::MapNorm | Role::RowNorm);
    let members: Vec<usize> = (0..scene.things.len())
        .filter(|index| {
            let thing = &scene.things[*index];
            let mut of_norms = thing.users.iter().filter(|user| is_norm(role(user.node)));
            // Means and deviations are float32 with and without autocast.
            let is_statistic = of_norms.clone().any(|user| user.field != "input");
            thing.is(Category::Activations)
                && thing.tensor.dtype == "float32"
                && (is_norm(thing.made_by()) || of_norms.next().is_some())
                && !is_statistic
        })
        .collect();
    let Some(finding) = remark(scene, &members) else { return Vec::new() };
    vec![Finding {
        title: format!("norm layers work in float32 although autocast is {dtype}"),
        explanation: format!(
            "Inputs cast up for norm layers, and their float32 results, are kept {}. Autocast runs these \
             layers in float32, so it does not halve what they keep.",
            modules(scene, &members)
        ),
        scales: "as the maps or rows that are normed".to_owned(),
        ..finding
    }]
}
