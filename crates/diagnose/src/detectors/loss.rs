//! Logits: positions × vocabulary, several times.

use std::collections::BTreeSet;

use anatomy::bytes;
use recording::{Category, Phase};

use super::loss_gradients::is_fused_loss;
use crate::finding::Finding;
use crate::phrases::{place, tensor};
use crate::remedies::remedies;
use crate::roles::Role;
use crate::scene::{Claims, Scene, Thing};

/// Fewer classes are no vocabulary.
const VOCABULARY: u64 = 1000;

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let is_of_loss = |thing: &Thing<'_>| {
        thing.is_of_a_pass()
            && !thing.users.iter().any(|user| is_fused_loss(user.node))
            && (thing.made_by() == Role::ClassLoss || thing.is_kept_for(Role::ClassLoss))
            && classes(thing).is_some_and(|classes| VOCABULARY <= classes)
    };
    let anchors = claims.free(scene, is_of_loss);
    let things = || anchors.iter().map(|index| &scene.things[*index]);
    let classes: BTreeSet<u64> = things().filter_map(classes).collect();
    let modules: BTreeSet<&str> = things().map(Thing::module).collect();
    let sizes: BTreeSet<Option<u64>> = things().map(Thing::elements).collect();
    // Who keeps what a compiled function needs is not known: it is as large as what is known.
    let is_free = |thing: &Thing<'_>| match thing.is_kept_by_compiled() {
        true => sizes.contains(&thing.elements()),
        // Features may be as wide as a vocabulary; but layers keep them.
        false => !thing.is_kept_for_a_layer(),
    };
    let members = claims.free(scene, |thing| {
        is_of_loss(thing)
            || (thing.is_of_a_pass()
                && is_wide(thing, &classes)
                && is_free(thing)
                && (modules.contains(thing.module()) || is_of_a_head(thing)))
    });
    let members = claims.with_shapeless(scene, members);
    let Some(vocabulary) = classes.last() else { return Vec::new() };
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let with_shape = members.iter().find(|index| !scene.things[**index].tensor.dtype.is_empty());
    let largest = &scene.things[*with_shape.unwrap_or(&members[0])];
    let wide =
        members.iter().filter(|index| scene.things[**index].tensor.dtype == "float32").count();
    let bound = scene.part(&members, |thing| is_bound(scene, thing));
    let (by_variable, mut may_help) = match scene.bytes(&bound) {
        0 => (String::new(), Vec::new()),
        size => (
            format!(" {}: kept by nothing but a variable or an output object.", bytes::text(size)),
            remedies!(scene, "drop-results"),
        ),
    };
    may_help.extend(remedies!(scene, "chunked-cross-entropy", "batch"));
    vec![Finding {
        title: format!("logits over {vocabulary} classes, {} times", members.len()),
        explanation: format!(
            "{} at {} is the largest. Logits, their log-softmax and their gradient are as large each; {wide} \
             of {} are float32.{by_variable}",
            tensor(&largest.tensor.dtype, largest.shape()),
            place(largest.line()),
            members.len()
        ),
        scales: "batch × tokens × vocabulary".to_owned(),
        remedies: may_help,
        ..finding
    }]
}

/// Made by a forward pass that is over, and autograd does not need it.
fn is_bound(scene: &Scene<'_>, thing: &Thing<'_>) -> bool {
    matches!(scene.phase(), Some(Phase::Backward | Phase::Optimizer))
        && thing.tensor.born.phase == Some(Phase::Forward)
        && !thing.is(Category::Activations)
        && !thing.operator().is_empty()
}

/// The number of classes: the last size, or the second where positions follow, as in images.
fn classes(thing: &Thing<'_>) -> Option<u64> {
    match thing.shape() {
        [_, classes] | [_, _, classes] => Some(*classes),
        [_, classes, ..] => Some(*classes),
        _ => None,
    }
}

/// Has it as many classes as logits have?
fn is_wide(thing: &Thing<'_>, wanted: &BTreeSet<u64>) -> bool {
    classes(thing).is_some_and(|own| wanted.contains(&own))
}

/// Made by a layer of the forward pass.
fn is_of_a_head(thing: &Thing<'_>) -> bool {
    !thing.operator().is_empty() && thing.made_by() == Role::Linear
}
