//! Dense grids into which few points are written: voxels, pillars, bird's-eye views.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::phrases::{count, place, tensor};
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

/// A grid with fewer places for each that is filled is not sparse.
const SPARSE: u64 = 4;

/// What a grid is begun with, written with, or put together by.
const MAKERS: [&str; 8] =
    ["zeros", "new_zeros", "zeros_like", "full", "stack", "cat", "index_put", "index_put_"];

const WRITERS: [&str; 5] = [
    "IndexPutBackward",
    "ScatterBackward",
    "ScatterAddBackward",
    "IndexAddBackward",
    "IndexCopyBackward",
];

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let filled = filled(scene);
    let is_grid = |thing: &Thing<'_>| {
        let rows = filled.get(thing.module());
        let is_made = MAKERS.contains(&thing.operator());
        let is_sparse =
            |rows: &u64| places(thing).is_some_and(|places| rows.saturating_mul(SPARSE) <= places);
        let has_points = rows.is_some_and(|rows| is_sparse(rows) && !fills_rows(thing, *rows));
        thing.is_of_a_pass() && is_made && has_points
    };
    let grids = claims.free(scene, is_grid);
    let sizes: BTreeSet<Option<u64>> =
        grids.iter().map(|it| scene.things[*it].elements()).collect();
    // Gradients of it, which are as large.
    let members = claims.free(scene, |thing| {
        let is_gradient = !thing.tensor.origin.node.is_empty() && sizes.contains(&thing.elements());
        is_grid(thing) || (thing.is_of_a_pass() && thing.elements().is_some() && is_gradient)
    });
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let Some(grid) = grids.iter().map(|it| &scene.things[*it]).max_by_key(|it| places(it)) else {
        return Vec::new();
    };
    let all = places(grid).unwrap_or(0);
    let rows = filled.get(grid.module()).copied().unwrap_or(0);
    vec![Finding {
        title: format!("a dense grid of {} places for {} points at most", count(all), count(rows)),
        explanation: format!(
            "{} at {}: points are written into zeros, and at most {:.0} % of the places are filled.",
            tensor(&grid.tensor.dtype, grid.shape()),
            place(grid.line()),
            rows as f64 * 100.0 / all.max(1) as f64
        ),
        scales: "batch × channels × places of the grid, however few points there are".to_owned(),
        remedies: remedies!(scene, "sparse-grid", "inputs"),
        ..finding
    }]
}

/// By module how many places are written at most, by the indices that autograd keeps.
fn filled<'a>(scene: &Scene<'a>) -> BTreeMap<&'a str, u64> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for thing in scene.things.iter().filter(|thing| thing.tensor.dtype.starts_with("int")) {
        let is_writer = |node: &str| WRITERS.iter().any(|name| node.starts_with(name));
        let user = thing.users.iter().find(|user| is_writer(user.node));
        if let (Some(user), Some(elements)) = (user, thing.elements()) {
            let sum = sums.entry(user.module).or_default();
            *sum = sum.saturating_add(elements);
        }
    }
    sums
}

/// Whether an index is of whole rows: a pool of regions writes one map for each, and fills every place.
fn fills_rows(thing: &Thing<'_>, rows: u64) -> bool {
    thing.shape().first().is_some_and(|first| rows <= first.saturating_mul(SPARSE))
}

/// Batch and space, without channels.
fn places(thing: &Thing<'_>) -> Option<u64> {
    match thing.shape() {
        [_, channels, _, ..] => thing.elements()?.checked_div(*channels),
        _ => None,
    }
}
