//! Two small tensors broadcast against each other: pairwise differences, outer products, distances.

use std::collections::HashMap;

use recording::facts::word;

use crate::finding::Finding;
use crate::phrases::{modules, place, tensor};
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

/// Functions that give a number for each pair of points; all others broadcast.
const OF_POINTS: [&str; 6] = ["cdist", "matmul", "__matmul__", "__rmatmul__", "bmm", "mm"];

/// What makes results that are larger than both of their sides, by module and shape.
struct Outer<'a>(HashMap<(&'a str, Vec<u64>), &'a str>);

impl<'a> Outer<'a> {
    fn of(scene: &Scene<'a>) -> Outer<'a> {
        let row = |fact: &'a String| {
            let shape = word(fact, "shape")?.split('x').map(str::parse).collect::<Result<_, _>>();
            Some(((word(fact, "module")?, shape.ok()?), word(fact, "operator").unwrap_or_default()))
        };
        Outer(scene.anatomy.facts.of("outer").iter().filter_map(row).collect())
    }

    fn operator(&self, thing: &Thing<'_>) -> Option<&'a str> {
        let module = if thing.module().is_empty() { "-" } else { thing.module() };
        let found = self.0.get(&(module, thing.shape().to_vec())).copied();
        found.filter(|_| !thing.shape().is_empty())
    }
}

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let outer = Outer::of(scene);
    let is_outer =
        |thing: &Thing<'_>| thing.operator().contains("cdist") || outer.operator(thing).is_some();
    let members = claims.free(scene, |thing| thing.is_of_a_pass() && is_outer(thing));
    let members = claims.with_shapeless(scene, members);
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let largest = &scene.things[members[0]];
    let points = outer.operator(largest).filter(|operator| OF_POINTS.contains(operator));
    let title = match (points, largest.shape()) {
        (Some(_), [.., one, other]) => format!("a number for every pair of {one} × {other} points"),
        _ => "broadcasting materialises every pair of two tensors".to_owned(),
    };
    let is_sorted = members.iter().any(|index| scene.things[*index].operator().contains("sort"));
    let mut remedies = remedies!(scene, "tiles", "checkpoint");
    if is_sorted {
        remedies.splice(0..0, remedies!(scene, "nearest"));
    }
    vec![Finding {
        title,
        explanation: format!(
            "{} at {} {} is larger than both of what it is made of; what follows it has the same shape.",
            tensor(&largest.tensor.dtype, largest.shape()),
            place(largest.line()),
            modules(scene, &members)
        ),
        scales: "the product of both sides: points²".to_owned(),
        remedies,
        ..finding
    }]
}
