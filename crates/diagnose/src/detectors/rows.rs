//! Rows of features: tokens of transformers, points, samples; and whatever else a pass has made.

use std::collections::{BTreeMap, BTreeSet};

use anatomy::bytes;
use recording::{Category, Phase};

use crate::finding::Finding;
use crate::phrases::{below, is_number, kept};
use crate::remedies::of_activations;
use crate::scene::{Claims, Scene, Thing};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let mut of_region: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for index in claims.free(scene, |thing| thing.is_of_a_pass()) {
        of_region.entry(region(scene.things[index].module())).or_default().push(index);
    }
    let mut regions: Vec<(String, Vec<usize>)> = of_region.into_iter().collect();
    regions.sort_by_key(|(_, group)| std::cmp::Reverse(scene.bytes(group)));
    let mut rest: Vec<usize> = Vec::new();
    let mut findings = Vec::new();
    for (region, group) in regions {
        match claims.finding(scene, &group) {
            Some(finding) => findings.push(describe(scene, &region, &group, finding)),
            None => rest.extend(group),
        }
    }
    let other = claims.finding(scene, &rest);
    findings.extend(other.map(|finding| describe(scene, "other modules", &rest, finding)));
    findings
}

/// A product of more sizes says nothing to a reader.
const SIZES: usize = 3;

/// Fewer modules than these may have made the input of the next.
const RETURNED: usize = 3;

/// A model that is itself a list of blocks.
const WHOLE: &str = "the model";

/// The list of blocks that a module is in, else its topmost module.
fn region(module: &str) -> String {
    let mut path = String::new();
    for name in module.split('.') {
        if is_number(name) {
            return if path.is_empty() { WHOLE.to_owned() } else { path };
        }
        path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    }
    module.split('.').next().unwrap_or_default().to_owned()
}

fn describe(scene: &Scene<'_>, region: &str, group: &[usize], finding: Finding) -> Finding {
    let saved = scene.part(group, |thing| thing.is(Category::Activations));
    let passing = finding.bytes.saturating_sub(scene.bytes(&saved));
    let path = if region == WHOLE { "" } else { region };
    let blocks = below(scene, group, path).keys().filter(|path| is_number(path)).count();
    let rows = rows(scene, group);
    let of_rows = rows.map(|rows| format!(" of {}", text_of(&rows))).unwrap_or_default();
    let name = match (region, blocks) {
        ("", _) => "outside of modules".to_owned(),
        (region, 0 | 1) => format!("in {region}"),
        (region, blocks) => format!("in the {blocks} blocks of {region}"),
    };
    let mut explanation = kept(scene, &saved, "tensor");
    let old = scene.bytes(&made_earlier(scene, group));
    let left = scene.bytes(&left_behind(scene, group));
    if passing != old + left {
        let what = match scene.phase() {
            Some(Phase::Backward) => "gradients in flight and other temporaries",
            _ => "temporaries of the current layer",
        };
        explanation += &format!(" {}: {what}.", bytes::text(passing - old - left));
    }
    if left != 0 {
        explanation += &format!(
            " {}: the modules that made them have returned; a variable keeps them, or code that autograd does not \
             show, such as TorchScript.",
            bytes::text(left)
        );
    }
    if old != 0 {
        explanation += &format!(
            " {}: made in an earlier phase, and something still refers to it.",
            bytes::text(old)
        );
    }
    let kind = if scene.bytes(&saved) < passing { "temporaries" } else { "activations" };
    Finding {
        title: format!("{kind}{of_rows} {name}"),
        explanation: explanation.trim_start().to_owned(),
        scales: "batch × tokens × features".to_owned(),
        remedies: of_activations(scene, &saved),
        ..finding
    }
}

/// What is kept for no backward pass, and was made in an earlier step or before training.
fn made_earlier(scene: &Scene<'_>, group: &[usize]) -> Vec<usize> {
    let now = scene.at.when;
    scene.part(group, |thing| {
        let born = thing.tensor.born;
        let is_first = born.phase == Some(Phase::Construction) && now.phase != born.phase;
        !thing.is(Category::Activations) && (born.step < now.step || is_first)
    })
}

/// What modules of this pass have left alive, and no node of autograd is known to keep. One or two of them may have made
/// what the layer that runs is given.
fn left_behind(scene: &Scene<'_>, group: &[usize]) -> Vec<usize> {
    let running = scene.at.raised_by.as_ref().map_or("", |origin| origin.module.as_str());
    if scene.phase() == Some(Phase::Backward) || running.is_empty() {
        return Vec::new();
    }
    let has_returned = |thing: &Thing<'_>| {
        let own = thing.module();
        own != running && !own.is_empty() && !is_inside(running, own) && !is_inside(own, running)
    };
    let old = made_earlier(scene, group);
    let left = scene.part(group, |it| !it.is(Category::Activations) && has_returned(it));
    let left: Vec<usize> = left.into_iter().filter(|index| !old.contains(index)).collect();
    let modules: BTreeSet<&str> = left.iter().map(|it| scene.things[*it].module()).collect();
    if RETURNED <= modules.len() { left } else { Vec::new() }
}

fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
}

/// Rows (everything before the last size) that hold the most bytes, as sizes.
fn rows(scene: &Scene<'_>, group: &[usize]) -> Option<Vec<u64>> {
    let mut sums: BTreeMap<&[u64], u64> = BTreeMap::new();
    for index in group {
        if let [rows @ .., _] = scene.things[*index].shape() {
            let sum = sums.entry(rows).or_default();
            *sum = sum.saturating_add(scene.things[*index].tensor.block);
        }
    }
    let (rows, bytes) = sums.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    let is_most = scene.bytes(group) < bytes.saturating_mul(4);
    let rows: Vec<u64> = rows.iter().copied().filter(|size| *size != 1).collect();
    (is_most && (1..=SIZES).contains(&rows.len())).then_some(rows)
}

fn text_of(rows: &[u64]) -> String {
    match rows {
        [rows] => format!("{rows} rows"),
        _ => format!("{} rows", crate::phrases::times(rows)),
    }
}
