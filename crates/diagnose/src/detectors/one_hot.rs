//! One-hot vectors: a number written as a row of zeros.

use std::collections::HashSet;

use recording::Category;
use recording::facts::word;

use crate::finding::Finding;
use crate::phrases::place;
use crate::remedies::remedies;
use crate::roles::Role;
use crate::scene::{Claims, Scene, Thing};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    // `one_hot(…).float()`: the integers may be gone by the time of the peak.
    let written: HashSet<(&str, &str)> = scene
        .anatomy
        .facts
        .of("one_hot")
        .iter()
        .filter_map(|fact| Some((word(fact, "module")?, word(fact, "shape")?)))
        .collect();
    let is_one_hot = |thing: &Thing<'_>| {
        let module = if thing.module().is_empty() { "-" } else { thing.module() };
        let sizes: Vec<String> = thing.shape().iter().map(u64::to_string).collect();
        let is_copy = thing.made_by() == Role::Copy || thing.is(Category::Inputs);
        thing.operator() == "one_hot" || (is_copy && written.contains(&(module, &sizes.join("x"))))
    };
    let members = claims.free(scene, |thing| {
        (thing.is_of_a_pass() || thing.is(Category::Inputs)) && is_one_hot(thing)
    });
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
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
        remedies: remedies!(scene, "indices"),
        ..finding
    }]
}
