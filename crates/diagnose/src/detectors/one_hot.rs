//! One-hot vectors: a number written as a row of zeros.

use std::collections::HashSet;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};
use crate::words::place;

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let is_one_hot = |thing: &Thing<'_>| thing.operator() == "one_hot";
    let own = claims.free(scene, is_one_hot);
    // `one_hot(…).float()`: made at the same line, of the same shape; the integers may be gone by then.
    let lines: HashSet<(&str, u32)> = own.iter().map(|index| scene.things[*index].line()).collect();
    let shapes: HashSet<&[u64]> = own.iter().map(|index| scene.things[*index].shape()).collect();
    let members = claims.free(scene, |thing| {
        is_one_hot(thing)
            || (thing.is_of_a_pass()
                && lines.contains(&thing.line())
                && shapes.contains(thing.shape()))
    });
    let Some(finding) = claims.finding(scene, "one-hot", &members) else { return Vec::new() };
    let first = &scene.things[members[0]];
    vec![Finding {
        title: "indices are written out as one-hot vectors".to_owned(),
        explanation: format!(
            "{}: one index becomes {} numbers{}.",
            place(first.line()),
            first.shape().last().copied().unwrap_or_default(),
            if first.tensor.dtype == "int64" { " of eight bytes" } else { "" }
        ),
        scales: "positions × classes".to_owned(),
        remedies: remedies(&["indices"]),
        ..finding
    }]
}
