//! Evaluation that builds a graph which no backward pass will use.

use recording::Phase;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

/// Only where the peak is in an evaluation: elsewhere it costs nothing that matters.
pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let models = scene.anatomy.facts.of("evaluated_with_grad");
    let phase = scene.phase();
    if models.is_empty() || !matches!(phase, Some(Phase::Evaluation | Phase::Inference)) {
        return Vec::new();
    }
    let members = claims.free(scene, |thing| {
        thing.is_of_a_pass() && thing.tensor.born.phase == phase && !thing.module().is_empty()
    });
    let Some(finding) = claims.finding(scene, &members) else {
        return Vec::new();
    };
    vec![Finding {
        title: match phase {
            Some(Phase::Inference) => "inference runs without torch.no_grad()".to_owned(),
            _ => "the evaluation runs without torch.no_grad()".to_owned(),
        },
        explanation: format!(
            "{} was called while gradients were on, and no backward pass followed: \
             every layer's activations stay until the result is dropped. With torch.no_grad() only \
             those of the layer that runs would.",
            models.join(", ")
        ),
        scales: "batch of the evaluation".to_owned(),
        remedies: remedies!(scene, "no-grad"),
        ..finding
    }]
}
