//! Gradients that are alive under the forward pass.

use recording::{Category, Phase};

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    if !matches!(scene.phase(), Some(Phase::Forward | Phase::Evaluation)) {
        return Vec::new();
    }
    // A loss may make gradients in its forward pass: these are of no earlier batch.
    let members = claims
        .free(scene, |thing| thing.is(Category::Gradients) && !scene.is_of_this_forward(thing));
    let now = scene.at.when.step;
    let of_this_step = members.iter().filter(|index| scene.things[**index].tensor.born.step == now);
    let is_accumulation = members.len() < 2 * of_this_step.count();
    let Some(finding) = claims.finding(scene, &members) else {
        return Vec::new();
    };
    let (title, explanation, remedies) = match is_accumulation {
        true => (
            "gradients of earlier batches lie under the forward pass",
            "They were made in this step, before its optimizer ran: gradients are accumulated. They are \
             added to in place, so there is one set of them; but it is there while activations are.",
            Vec::new(),
        ),
        false => (
            "gradients of the last step are alive in the next forward pass",
            "The optimizer has used them, and they are only given back, or set to zero, later. Freed \
             before the forward pass they would not lie under its activations.",
            remedies!(scene, "zero-grad"),
        ),
    };
    vec![Finding {
        title: title.to_owned(),
        explanation: explanation.to_owned(),
        scales: "trainable parameters".to_owned(),
        remedies,
        ..finding
    }]
}
