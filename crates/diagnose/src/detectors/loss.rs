//! Logits: positions × vocabulary, several times.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::roles::Role;
use crate::scene::{Claims, Scene, Thing};
use crate::words::{place, tensor};

/// Fewer classes are no vocabulary.
const VOCABULARY: u64 = 1000;

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let anchors = claims.free(scene, |thing| {
        thing.is_of_a_pass() && (thing.made_by() == Role::Loss || thing.is_kept_for(Role::Loss))
    });
    let classes: BTreeSet<u64> = anchors
        .iter()
        .filter_map(|index| classes(&scene.things[*index]))
        .filter(|classes| VOCABULARY <= *classes)
        .collect();
    let members = claims.free(scene, |thing| {
        thing.is_of_a_pass() && classes_of_rows(thing).is_some_and(|own| classes.contains(&own))
    });
    let Some(vocabulary) = classes.last() else { return Vec::new() };
    let Some(finding) = claims.finding(scene, "loss-logits", &members) else { return Vec::new() };
    let largest = &scene.things[members[0]];
    let wide =
        members.iter().filter(|index| scene.things[**index].tensor.dtype == "float32").count();
    vec![Finding {
        title: format!("logits over {vocabulary} classes, {} times", members.len()),
        explanation: format!(
            "{} at {} is the largest. Logits, their log-softmax and their gradient are as large each; {wide} \
             of {} are float32.",
            tensor(&largest.tensor.dtype, largest.shape()),
            place(largest.line()),
            members.len()
        ),
        scales: "batch × tokens × vocabulary".to_owned(),
        remedies: remedies(&["chunked-cross-entropy", "batch"]),
        ..finding
    }]
}

/// The number of classes: the last size, or the second where positions follow, as in images.
fn classes(thing: &Thing<'_>) -> Option<u64> {
    match thing.shape() {
        [_, classes] | [_, _, classes] => Some(*classes),
        [_, classes, ..] => Some(*classes),
        _ => None,
    }
}

/// Of logits and their copies.
fn classes_of_rows(thing: &Thing<'_>) -> Option<u64> {
    classes(thing).filter(|classes| VOCABULARY <= *classes)
}
