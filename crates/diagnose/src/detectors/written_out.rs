//! Activation functions and norms that are written in Python: autograd keeps a tensor for each step of the formula.

use std::collections::{BTreeMap, BTreeSet};

use recording::Category;

use crate::finding::Finding;
use crate::phrases::{modules, place, plural, tensor};
use crate::remedies::remedies;
use crate::roles::Role;
use crate::scene::{Claims, Scene, Thing};

/// Parts of classes' names, lower case.
const NAMES: [&str; 8] = ["norm", "gelu", "activation", "silu", "swish", "mish", "glu", "rotary"];

/// One tensor is what a fused function keeps too.
const LEAST: usize = 2;

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let mut classes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for index in claims.free(scene, |thing| is_step_of_formula(scene, thing)) {
        classes.entry(scene.class(scene.things[index].module())).or_default().push(index);
    }
    let mut findings = Vec::new();
    for (class, all) in classes {
        let (members, calls) = repeated(scene, &all);
        if members.is_empty() {
            continue;
        }
        let Some(finding) = claims.finding(scene, &members) else { continue };
        let each = members.len() / calls;
        let example = &scene.things[members[0]];
        findings.push(Finding {
            title: format!("{class} is written in Python: {each} tensors for each input"),
            explanation: format!(
                "Each step of its formula is a function of its own, so autograd keeps {each} tensors like {}{} \
                 where a fused function keeps one, {calls} time{} {}.",
                tensor(&example.tensor.dtype, example.shape()),
                match place(example.line()) {
                    at if at.is_empty() => at,
                    at => format!(" ({at})"),
                },
                plural(calls as u64),
                modules(scene, &members)
            )
            .replace(" .", "."),
            scales: "batch × tokens × features".to_owned(),
            remedies: remedies!(scene, "fused-function", "checkpoint"),
            ..finding
        });
    }
    findings
}

/// Kept by a plain function inside of a module that is called like an activation function or a norm.
fn is_step_of_formula(scene: &Scene<'_>, thing: &Thing<'_>) -> bool {
    let class = scene.class(thing.module()).to_ascii_lowercase().replace("normal", "");
    let is_plain = |role: Role| matches!(role, Role::Arithmetic | Role::Function | Role::Copy);
    thing.is(Category::Activations)
        && NAMES.iter().any(|name| class.contains(name))
        && !thing.is_kept_by_compiled()
        && is_plain(thing.made_by())
        && is_plain(thing.kept_for())
}

/// Those that have the size of others of the same call, and how many calls there are.
fn repeated(scene: &Scene<'_>, all: &[usize]) -> (Vec<usize>, usize) {
    let mut alike: BTreeMap<(&str, u64), Vec<usize>> = BTreeMap::new();
    for index in all {
        let thing = &scene.things[*index];
        if let Some(elements) = thing.elements() {
            alike.entry((thing.module(), elements)).or_default().push(*index);
        }
    }
    alike.retain(|_, members| LEAST <= members.len());
    let calls: BTreeSet<&str> = alike.keys().map(|(module, _)| *module).collect();
    let count = calls.len().max(1);
    let mut members: Vec<usize> = alike.into_values().flatten().collect();
    members.sort_unstable();
    (members, count)
}
