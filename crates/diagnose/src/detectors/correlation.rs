//! Every position of one map by every position of another, as in optical flow and stereo; and its pyramid.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::phrases::{modules, place, tensor};
use crate::remedies::remedies;
use crate::roles::Role;
use crate::scene::{Claims, Scene, Thing};

/// Fewer positions are no map.
const POSITIONS: u64 = 64;

const PRODUCTS: [&str; 5] = ["matmul", "bmm", "baddbmm", "__matmul__", "einsum"];

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let of_pass = claims.free(scene, |thing| thing.is_of_a_pass());
    let things = || of_pass.iter().map(|index| &scene.things[*index]);
    // First sizes of levels; a volume whose rows are kept as `[batch, positions, positions]` is known by them.
    let firsts: BTreeSet<u64> = things().filter_map(|thing| level(thing.shape())).collect();
    let is_base = |thing: &Thing<'_>| is_volume(thing) || is_looked_up(thing, &firsts);
    let rows: BTreeSet<u64> =
        things().filter(|it| is_base(it)).filter_map(|it| positions(it.shape())).collect();
    let members = claims.free(scene, |thing| {
        let is_level = level(thing.shape()).is_some_and(|first| rows.contains(&first));
        thing.is_of_a_pass() && (is_level || is_base(thing))
    });
    let members = claims.with_shapeless(scene, members);
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let largest = members.iter().map(|it| &scene.things[*it]).find(|thing| is_base(thing));
    let Some(largest) = largest else { return Vec::new() };
    vec![Finding {
        title: format!(
            "a correlation volume: every position by every other {}",
            modules(scene, &members)
        )
        .trim_end()
        .to_owned(),
        explanation: format!(
            "{} at {} has a number for each pair of positions of two maps; its pyramid and its gradients come \
             on top.",
            tensor(&largest.tensor.dtype, largest.shape()),
            place(largest.line())
        ),
        scales: "batch × positions²: the fourth power of the resolution".to_owned(),
        remedies: remedies!(scene, "correlate-on-demand", "inputs"),
        ..finding
    }]
}

/// `[batch · height · width, 1, height, width]`, `[…, height, width, 1, height, width]`; or, if a product of matrices made
/// it, both sizes twice. Maps of 64 × 64 × 64 have equal sizes too.
fn is_volume(thing: &Thing<'_>) -> bool {
    if thing.made_by() == Role::Convolution || thing.is_kept_for(Role::Convolution) {
        return false;
    }
    match thing.shape() {
        [rows, 1, height, width] => {
            let one = height.saturating_mul(*width);
            POSITIONS <= one && one <= *rows && rows.is_multiple_of(one)
        }
        [.., a, b, 1, c, d] => (a, b) == (c, d) && POSITIONS <= a.saturating_mul(*b),
        [.., a, b, c, d] => {
            (a, b) == (c, d)
                && POSITIONS <= a.saturating_mul(*b)
                && PRODUCTS.contains(&thing.operator())
        }
        _ => false,
    }
}

/// `[batch, positions, positions]` that is pooled or sampled, where levels of as many rows are there.
fn is_looked_up(thing: &Thing<'_>, firsts: &BTreeSet<u64>) -> bool {
    match thing.shape() {
        [batch, rows, columns] => {
            rows == columns
                && POSITIONS <= *rows
                && firsts.contains(&batch.saturating_mul(*rows))
                && (thing.is_kept_for(Role::Pool) || thing.is_kept_for(Role::Upsample))
        }
        _ => false,
    }
}

/// The first size of `[batch · positions, 1, height, width]`.
fn level(shape: &[u64]) -> Option<u64> {
    match shape {
        [first, 1, _, _] if POSITIONS <= *first => Some(*first),
        _ => None,
    }
}

/// How many positions the first map has, over the batch.
fn positions(shape: &[u64]) -> Option<u64> {
    match shape {
        [rows, 1, _, _] => Some(*rows),
        [batch, rows, _] => batch.checked_mul(*rows),
        [rows @ .., 1, _, _] | [rows @ .., _, _] => {
            rows.iter().try_fold(1u64, |product, size| product.checked_mul(*size))
        }
        _ => None,
    }
}
