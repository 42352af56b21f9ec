//! A switch for checkpointing that is on and changes nothing, or reaches little.

use std::collections::HashSet;

use recording::Category;

use crate::finding::Finding;
use crate::phrases::modules;
use crate::remedies::remedies;
use crate::roles::Role;
use crate::scene::{Claims, Scene, Thing, remark};

pub(super) fn detect(scene: &Scene<'_>, _: &mut Claims) -> Vec<Finding> {
    let facts = &scene.anatomy.facts;
    let switches = facts.of("checkpointing");
    if switches.is_empty() {
        return Vec::new();
    }
    let recomputed: HashSet<&str> = facts.of("recomputed").iter().map(String::as_str).collect();
    // Paths of what is in a model do not name it.
    let is_model = |path: &str| scene.class(path) == path;
    let runs_again = |path: &str| {
        recomputed.contains(path)
            || (is_model(path) && !recomputed.is_empty())
            || recomputed.iter().any(|other| is_below(other, path) || is_below(path, other))
    };
    // A switch of a part that keeps nothing, such as a frozen encoder, has nothing to do.
    let keeps = |path: &str| {
        let is_inside = |module: &str| module == path || is_below(module, path) || is_model(path);
        scene.things.iter().any(|thing| thing.users.iter().any(|user| is_inside(user.module)))
    };
    let idle: Vec<&String> =
        switches.iter().filter(|path| !runs_again(path) && keeps(path)).collect();
    let is_kept = |thing: &Thing<'_>| {
        thing.is(Category::Activations)
            && !thing.users.is_empty()
            && !thing.is_kept_for(Role::Checkpoint)
            // Of a loss no block has a switch.
            && !thing.is_kept_for(Role::ClassLoss)
            && !thing.is_kept_for(Role::Loss)
            && thing.users.iter().all(|user| !recomputed.contains(user.module))
    };
    let members: Vec<usize> =
        (0..scene.things.len()).filter(|index| is_kept(&scene.things[*index])).collect();
    // A switch that works leaves little; what lies outside of all blocks is not its matter.
    let saved = scene.at.categories.of(Category::Activations);
    let is_working = idle.is_empty() && !recomputed.is_empty();
    if idle.is_empty() && !is_working {
        return Vec::new();
    }
    if is_working && scene.bytes(&members).saturating_mul(2) < saved {
        return Vec::new();
    }
    let Some(finding) = remark(scene, &members) else { return Vec::new() };
    let (title, why) = match idle.is_empty() {
        false => (
            "a checkpointing switch is on and has no effect",
            format!(
                "{} has it set, but none of its modules ran again in the backward pass.",
                list(&idle)
            ),
        ),
        true => (
            "the checkpointing switch reaches only a part",
            "It is on and works where it is looked at; these activations are kept elsewhere."
                .to_owned(),
        ),
    };
    vec![Finding {
        title: title.to_owned(),
        explanation: format!("{why} Kept all the same: {}.", modules(scene, &members)),
        scales: "as what these modules keep".to_owned(),
        remedies: remedies!(scene, "whole-checkpoint"),
        ..finding
    }]
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

fn list(paths: &[&String]) -> String {
    let named: Vec<&str> = paths.iter().take(3).map(|path| path.as_str()).collect();
    let rest = paths.len().saturating_sub(3);
    if rest == 0 { named.join(", ") } else { format!("{} and {rest} more", named.join(", ")) }
}
