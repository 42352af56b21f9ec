//! Results that something of Python's still refers to: lists of hidden states, outputs that are bound during the
//! backward pass. Autograd does not need them, and nobody has dropped them.

use std::collections::BTreeSet;

use anatomy::bytes;
use recording::{Category, Phase};

use crate::finding::Finding;
use crate::phrases::{count, modules, place, plural};
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

/// Under a forward pass one result is on its way from a module to the next, and one to the sum after that: fewer
/// modules tell nothing.
const FEWEST: usize = 3;

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let earlier = of_earlier_steps(scene, claims);
    let members = claims.free(scene, |thing| is_kept(scene, thing));
    let makers: BTreeSet<&str> = members.iter().map(|it| scene.things[*it].module()).collect();
    let is_after = is_after_forward(scene);
    if !is_after && makers.len() < FEWEST {
        return earlier;
    }
    let Some(finding) = claims.finding(scene, &members) else { return earlier };
    let number = members.len() as u64;
    let (title, why) = match is_after {
        true => (
            format!(
                "{} result{} of the forward pass still referenced",
                count(number),
                plural(number)
            ),
            "The backward pass does not need them: a variable, a list or an output object still \
             refers to them.",
        ),
        false => (
            format!("{} results of modules that are kept", count(number)),
            "The modules that made them have returned, and no backward pass needs them: a list, a \
             cache or an output object still refers to them.",
        ),
    };
    let largest = &scene.things[members[0]];
    let at = match place(largest.line()) {
        at if at.is_empty() => String::new(),
        at => format!(" The largest, {}, is made at {at}.", bytes::text(largest.tensor.block)),
    };
    let mut findings = earlier;
    findings.push(Finding {
        title: format!("{title} {}", modules(scene, &members)).trim_end().to_owned(),
        explanation: format!("{why}{at}"),
        scales: "batch × what these modules give".to_owned(),
        remedies: remedies!(scene, "drop-results"),
        ..finding
    });
    findings
}

/// What the forward pass of an earlier step has made, and is there under that of this one: an output that is bound until
/// the next one takes its name.
fn of_earlier_steps(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let now = scene.at.when;
    let members = claims.free(scene, |thing| {
        let born = thing.tensor.born;
        is_result(thing) && born.phase == Some(Phase::Forward) && born.step < now.step
    });
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let largest = &scene.things[members[0]];
    vec![Finding {
        title: format!(
            "{} of the last step {}",
            if members.len() == 1 { "a result" } else { "results" },
            modules(scene, &members)
        )
        .trim_end()
        .to_owned(),
        explanation: format!(
            "Made in the forward pass of an earlier step (the largest at {}), and still there: a variable such as \
             `outputs` is bound until the next one takes its name, or something caches it.",
            place(largest.line())
        ),
        scales: "batch × what these modules give".to_owned(),
        remedies: remedies!(scene, "drop-results"),
        ..finding
    }]
}

/// Made by a module's function, and kept for no node.
fn is_result(thing: &Thing<'_>) -> bool {
    thing.is_of_a_pass()
        && !thing.is(Category::Activations)
        && !thing.is_refused
        && !thing.module().is_empty()
        && !thing.operator().is_empty()
}

fn is_after_forward(scene: &Scene<'_>) -> bool {
    matches!(scene.phase(), Some(Phase::Backward | Phase::Optimizer))
}

/// Made by a module's function, kept for no node, and its module is over.
fn is_kept(scene: &Scene<'_>, thing: &Thing<'_>) -> bool {
    if !is_result(thing) || thing.tensor.born.step != scene.at.when.step {
        return false;
    }
    match scene.phase() {
        Some(Phase::Backward | Phase::Optimizer) => {
            thing.tensor.born.phase == Some(Phase::Forward) && thing.tensor.origin.node.is_empty()
        }
        Some(Phase::Forward | Phase::Evaluation | Phase::Inference) => has_returned(scene, thing),
        _ => false,
    }
}

/// Whether another module runs now than the one that made it, or one inside of that.
fn has_returned(scene: &Scene<'_>, thing: &Thing<'_>) -> bool {
    let Some(running) = scene.at.raised_by.as_ref().filter(|origin| !origin.module.is_empty())
    else {
        return false;
    };
    let own = thing.module();
    // A model is called by its class, and all is inside of it.
    let is_root = scene.class(own) == own;
    let is_inside = running
        .module
        .strip_prefix(own)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    !is_root && !is_inside
}
