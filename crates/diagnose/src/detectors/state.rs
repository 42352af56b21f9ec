//! What training a model takes whatever it is fed: weights, gradients, the optimizer's state.

use anatomy::bytes;
use recording::Category;

use crate::finding::Finding;
use crate::phrases::count;
use crate::remedies::{Remedy, remedies};
use crate::scene::{Claims, Scene};

const KINDS: [Category; 3] = [Category::Weights, Category::Gradients, Category::Optimizer];

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let members = claims.free(scene, |thing| KINDS.contains(&thing.tensor.category));
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let part = |category: Category| {
        let of = scene.part(&members, |thing| thing.is(category));
        (scene.bytes(&of) != 0)
            .then(|| format!("{} {}", category.name(), bytes::text(scene.bytes(&of))))
    };
    let parts: Vec<String> = KINDS.into_iter().filter_map(part).collect();
    let counts = scene.anatomy.parameters.map_or(String::new(), |counts| {
        let each = finding.bytes as f64 / counts.total.max(1) as f64;
        format!(" {} parameters, {each:.1} bytes for each.", count(counts.total))
    });
    vec![Finding {
        title: match scene.is_inference() {
            true => "the model's weights".to_owned(),
            false => "the model's own state: weights, gradients, optimizer".to_owned(),
        },
        explanation: format!("{}.{counts} It is the same for every batch.", parts.join(", ")),
        scales: "parameters".to_owned(),
        remedies: match scene.is_inference() {
            true => of_weights(scene, &members),
            false => remedies!(scene, "freeze"),
        },
        ..finding
    }]
}

/// Nothing but the weights is there to be made smaller.
fn of_weights(scene: &Scene<'_>, members: &[usize]) -> Vec<Remedy> {
    let long = scene.part(members, |thing| thing.tensor.dtype == "float32");
    let mut found = Vec::new();
    if scene.is_worth(scene.bytes(&long)) {
        found.extend(remedies!(scene, "half-weights"));
    }
    found.extend(remedies!(scene, "quantise", "model-offload"));
    found
}
