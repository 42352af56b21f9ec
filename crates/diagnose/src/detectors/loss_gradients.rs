//! Losses that compute their gradients in the forward pass, chunk by chunk: no logits are kept, but the gradient of the
//! head is, and it is as large as the head.

use std::collections::HashSet;

use recording::Category;

use crate::finding::Finding;
use crate::phrases::{place, tensor};
use crate::roles::{Role, role};
use crate::scene::{Claims, Scene, Thing};

/// Fewer classes are no vocabulary.
const VOCABULARY: u64 = 1000;

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let weights = scene.things.iter().filter(|thing| thing.is(Category::Weights));
    let heads: HashSet<&[u64]> = weights
        .map(Thing::shape)
        .filter(|shape| matches!(shape, [classes, _] if VOCABULARY <= *classes))
        .collect();
    let is_head = |thing: &Thing<'_>| heads.contains(thing.shape());
    let is_sum = |thing: &Thing<'_>| is_begun(scene, thing);
    let anchors = claims.free(scene, |thing| is_head(thing) && (is_saved(thing) || is_sum(thing)));
    let members = claims.free(scene, |thing| is_saved(thing) || (is_head(thing) && is_sum(thing)));
    if anchors.is_empty() {
        return Vec::new();
    }
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let largest = &scene.things[anchors[0]];
    let at = match place(largest.line()) {
        at if at.is_empty() => String::new(),
        at => format!(" at {at}"),
    };
    vec![Finding {
        title: format!(
            "the loss keeps the gradient of its head, {}",
            tensor(&largest.tensor.dtype, largest.shape())
        ),
        explanation: format!(
            "It computes logits and gradients in chunks{at}, so no logits are kept; the gradient of the \
             head and that of its inputs wait for the backward pass."
        ),
        scales: "vocabulary × width of the head".to_owned(),
        ..finding
    }]
}

/// Kept by a function that is head and loss in one.
pub(super) fn is_saved(thing: &Thing<'_>) -> bool {
    // Outside of modules what such a function begins with looks like data of the script's.
    let is_own = thing.is_of_a_pass() || matches!(thing.operator(), "zeros_like" | "empty_like");
    is_own && thing.users.iter().any(|user| is_fused_loss(user.node))
}

/// `LigerFusedLinearCrossEntropyFunctionBackward`
pub(super) fn is_fused_loss(node: &str) -> bool {
    let name = node.to_ascii_lowercase();
    role(node) == Role::ClassLoss
        && (name.contains("linear") || name.contains("fused") || name.contains("chunk"))
}

/// Begun with zeros in a forward pass, to be added to; it may become the parameter's gradient.
fn is_begun(scene: &Scene<'_>, thing: &Thing<'_>) -> bool {
    let is_gradient = thing.is(Category::Gradients) && scene.is_of_this_forward(thing);
    (thing.is_of_a_pass() || is_gradient)
        && thing.tensor.origin.node.is_empty()
        && matches!(thing.operator(), "zeros_like" | "zeros" | "new_zeros")
}
