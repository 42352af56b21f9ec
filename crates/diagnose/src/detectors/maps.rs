//! Maps of convolutional networks: inputs of convolutions, norm layers and activation functions, by size.

use std::collections::{BTreeMap, BTreeSet};

use anatomy::bytes;
use recording::{Category, Phase};

use crate::finding::Finding;
use crate::phrases::{kept, modules, times};
use crate::remedies::{of_activations, remedies};
use crate::roles::{Role, role};
use crate::scene::{Claims, Scene, Thing};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let definite = claims.free(scene, is_map);
    let sizes: BTreeSet<&[u64]> =
        definite.iter().filter_map(|index| space(&scene.things[*index])).collect();
    // Sums and functions of maps are maps; they have the size of one.
    let members = claims.free(scene, |thing| {
        is_map(thing)
            || (is_made_of_maps(thing) && space(thing).is_some_and(|own| sizes.contains(own)))
    });
    let mut of_size: BTreeMap<&[u64], Vec<usize>> = BTreeMap::new();
    for index in members {
        of_size.entry(space(&scene.things[index]).unwrap_or_default()).or_default().push(index);
    }
    let mut groups: Vec<(&[u64], Vec<usize>)> = of_size.into_iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(scene.bytes(group)));
    let mut rest: Vec<usize> = Vec::new();
    let mut findings = Vec::new();
    for (size, group) in groups {
        match claims.finding(scene, &group) {
            Some(finding) => findings.push(describe(scene, size, &group, finding)),
            None => rest.extend(group),
        }
    }
    let other = claims.finding(scene, &rest);
    findings.extend(other.map(|finding| describe(scene, &[], &rest, finding)));
    findings
}

fn describe(scene: &Scene<'_>, size: &[u64], group: &[usize], finding: Finding) -> Finding {
    let saved = scene.part(group, |thing| thing.is(Category::Activations));
    let passing = scene.part(group, |thing| !thing.is(Category::Activations));
    let mut explanation = kept(scene, &saved, "map");
    if !passing.is_empty() {
        let what = match scene.phase() {
            Some(Phase::Backward) => "gradients in flight",
            _ => "temporary maps of the current layer",
        };
        explanation += &format!(" {}: {what}.", bytes::text(scene.bytes(&passing)));
    }
    let where_ = modules(scene, group);
    let groups = neighbours(scene, size);
    let title = match size {
        [] => format!("feature maps of other sizes {where_}"),
        [positions] => format!("feature maps of {positions} positions {where_}"),
        [points, each] if groups.is_some() => {
            let (points, each) = groups.unwrap_or((*points, *each));
            format!("feature maps of {points} points × {each} neighbours {where_}")
        }
        _ => format!("feature maps at {} {where_}", times(size)),
    };
    Finding {
        title: title.trim_end().to_owned(),
        explanation: explanation.trim_start().to_owned(),
        scales: match size {
            [_] => "batch × channels × positions".to_owned(),
            _ => "batch × channels × height × width".to_owned(),
        },
        remedies: match groups {
            Some(_) => {
                [remedies!(scene, "layer-before-groups"), of_activations(scene, &saved)].concat()
            }
            None => of_activations(scene, &saved),
        },
        ..finding
    }
}

/// Points and the neighbours of each, if that is what these two sizes are: indices of them say so, which autograd keeps
/// where points are gathered.
fn neighbours(scene: &Scene<'_>, size: &[u64]) -> Option<(u64, u64)> {
    let [one, other] = size else { return None };
    let gathers =
        |node: &str| ["IndexBackward", "GatherBackward"].iter().any(|it| node.starts_with(it));
    let is_list = |thing: &&Thing<'_>| {
        thing.tensor.dtype.starts_with("int") && thing.users.iter().any(|user| gathers(user.node))
    };
    let lists = scene.things.iter().filter(is_list).map(Thing::shape);
    let pairs: BTreeSet<(u64, u64)> = lists
        .filter_map(|shape| match shape {
            [_, points, each] => Some((*points, *each)),
            _ => None,
        })
        .collect();
    [(*one, *other), (*other, *one)].into_iter().find(|pair| pairs.contains(pair))
}

/// Made by what works on maps, or kept for it.
fn is_map(thing: &Thing<'_>) -> bool {
    let is_large_enough = thing.shape().is_empty() || 3 <= thing.shape().len();
    let is_kept = thing.users.iter().any(|user| role(user.node).is_of_maps());
    thing.is_of_a_pass() && is_large_enough && (is_kept || thing.made_by().is_of_maps())
}

fn is_made_of_maps(thing: &Thing<'_>) -> bool {
    let roles =
        [Role::Function, Role::Arithmetic, Role::Copy, Role::Other, Role::ClassLoss, Role::Loss];
    thing.is_of_a_pass() && 3 <= thing.shape().len() && roles.contains(&thing.made_by())
}

/// The sizes after batch and channels.
fn space<'a>(thing: &Thing<'a>) -> Option<&'a [u64]> {
    thing.shape().get(2..).filter(|space| !space.is_empty())
}
