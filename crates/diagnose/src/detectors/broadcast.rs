//! Two small tensors broadcast against each other: pairwise differences, outer products, distances.

use std::collections::HashSet;

use recording::facts::word;

use crate::finding::Finding;
use crate::phrases::{modules, place, tensor};
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let facts = scene.anatomy.facts.of("outer").iter();
    let outer: HashSet<(&str, Vec<u64>)> = facts
        .filter_map(|fact| {
            let shape = word(fact, "shape")?.split('x').map(str::parse).collect::<Result<_, _>>();
            Some((word(fact, "module")?, shape.ok()?))
        })
        .collect();
    let is_outer = |thing: &Thing<'_>| {
        let module = if thing.module().is_empty() { "-" } else { thing.module() };
        thing.operator().contains("cdist")
            || (!thing.shape().is_empty() && outer.contains(&(module, thing.shape().to_vec())))
    };
    let members = claims.free(scene, |thing| thing.is_of_a_pass() && is_outer(thing));
    let members = claims.with_shapeless(scene, members);
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let largest = &scene.things[members[0]];
    vec![Finding {
        title: "broadcasting materialises every pair of two tensors".to_owned(),
        explanation: format!(
            "{} at {} {} is larger than both of what it is made of; what follows it has the same shape.",
            tensor(&largest.tensor.dtype, largest.shape()),
            place(largest.line()),
            modules(scene, &members)
        ),
        scales: "the product of both sides: points²".to_owned(),
        remedies: remedies!(scene, "tiles", "checkpoint"),
        ..finding
    }]
}
