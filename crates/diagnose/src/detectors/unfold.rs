//! Windows written out: `F.unfold` (im2col) copies each element once for every window that it is in.

use std::collections::HashSet;

use anatomy::bytes;
use recording::facts::word;

use crate::finding::Finding;
use crate::phrases::{modules, place};
use crate::remedies::remedies;
use crate::roles::Role;
use crate::scene::{Claims, Scene, Thing};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let is_unfolded = |thing: &Thing<'_>| {
        thing.is_of_a_pass() && thing.made_by() == Role::Unfold && overlaps(scene, thing)
    };
    let own = claims.free(scene, is_unfolded);
    // Products and copies of what was unfolded have its size and are made in the same module.
    let sizes: HashSet<(&str, u64)> = own
        .iter()
        .map(|index| &scene.things[*index])
        .map(|thing| (thing.module(), thing.tensor.bytes))
        .collect();
    let members = claims.free(scene, |thing| {
        is_unfolded(thing)
            || (thing.is_of_a_pass() && sizes.contains(&(thing.module(), thing.tensor.bytes)))
    });
    if own.is_empty() {
        return Vec::new();
    }
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let largest = &scene.things[own[0]];
    let refused = match largest.is_refused {
        true => " It is the request that the card refused.",
        false => "",
    };
    vec![Finding {
        title: format!("windows are written out by {}", largest.operator()),
        explanation: format!(
            "{} {} writes every window of its input out as a column: kernel height × width times the \
             map. The largest takes {}.{refused}",
            place(largest.line()),
            modules(scene, &members),
            bytes::text(largest.tensor.bytes)
        ),
        scales: "batch × channels × kernel² × height × width".to_owned(),
        remedies: remedies!(scene, "tiles", "depthwise-gate", "inputs"),
        ..finding
    }]
}

/// Patches side by side take no more than the map did; windows that overlap write numbers several times.
fn overlaps(scene: &Scene<'_>, thing: &Thing<'_>) -> bool {
    let module = if thing.module().is_empty() { "-" } else { thing.module() };
    let mut calls = scene.anatomy.facts.of("unfolded").iter().filter(|call| {
        let columns = word(call, "columns").and_then(|columns| columns.parse::<u64>().ok());
        word(call, "module") == Some(module)
            && thing.shape().get(1).is_none_or(|own| Some(*own) == columns)
    });
    let times = |call: &String| word(call, "times").and_then(|times| times.parse::<f64>().ok());
    calls.any(|call| times(call).is_some_and(|times| 2.0 <= times))
}
