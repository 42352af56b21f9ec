//! Mixtures of experts with a place for each token that an expert may get, whether it gets one or not.

use std::collections::{BTreeMap, BTreeSet};

use recording::Category;

use crate::finding::Finding;
use crate::phrases::{count, modules};
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

/// Experts and places of one router, and the tokens that it gets.
#[derive(Clone, Copy)]
struct Buffers {
    experts: u64,
    places: u64,
    tokens: u64,
}

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let buffers = buffers(scene);
    let of = |thing: &Thing<'_>| {
        buffers.iter().find(|(top, _)| is_below(thing.module(), top)).map(|(_, buffers)| *buffers)
    };
    let is_buffer = |thing: &Thing<'_>| {
        thing.is_of_a_pass() && of(thing).is_some_and(|buffers| buffers.holds(thing.shape()))
    };
    let members = claims.with_shapeless(scene, claims.free(scene, is_buffer));
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let Some(of) = members.iter().find_map(|it| of(&scene.things[*it])) else { return Vec::new() };
    let all = of.experts.saturating_mul(of.places);
    vec![Finding {
        title: format!("experts have {} places for {} tokens", count(all), count(of.tokens)),
        explanation: format!(
            "{} experts × {} places {}: {:.2} for each token, filled or not. A token takes as many as it is \
             sent to; what is more is padding (the capacity factor).",
            of.experts,
            count(of.places),
            modules(scene, &members),
            all as f64 / of.tokens.max(1) as f64
        )
        .replace(" :", ":"),
        scales: "experts × places × features".to_owned(),
        remedies: remedies!(scene, "capacity", "grouped-experts", "checkpoint"),
        ..finding
    }]
}

/// Layers of experts: the module around weights `[experts, …, …]` that multiply `[experts, places, …]`, where a softmax
/// spreads tokens over as many.
fn buffers<'a>(scene: &Scene<'a>) -> Vec<(&'a str, Buffers)> {
    let mut experts: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for thing in scene.things.iter().filter(|thing| thing.is(Category::Weights)) {
        if let [number, _, _] = thing.shape() {
            experts.entry(thing.module()).or_default().insert(*number);
        }
    }
    let mut found: BTreeMap<&str, Buffers> = BTreeMap::new();
    for thing in scene.things.iter().filter(|thing| thing.is_of_a_pass()) {
        let [first, places, _] = thing.shape() else { continue };
        let product = thing.users.iter().find(|user| user.node.starts_with("BmmBackward"));
        let Some(module) = product.map(|user| user.module) else { continue };
        if !experts.get(module).is_some_and(|sizes| sizes.contains(first)) {
            continue;
        }
        // A router stands beside the experts, if it is no part of them.
        let top = module.rsplit_once('.').map_or(module, |(above, _)| above);
        if let Some(tokens) = routed(scene, top, *first).filter(|it| *it < first * places) {
            found.insert(top, Buffers { experts: *first, places: *places, tokens });
        }
    }
    found.into_iter().collect()
}

/// How many tokens a softmax spreads over experts.
fn routed(scene: &Scene<'_>, top: &str, experts: u64) -> Option<u64> {
    let is_router = |thing: &&Thing<'_>| {
        thing.shape().last() == Some(&experts)
            && thing.users.iter().any(|user| user.node.starts_with("SoftmaxBackward"))
            && is_below(thing.module(), top)
    };
    let rows = scene.things.iter().filter(is_router).filter_map(Thing::elements);
    rows.map(|elements| elements / experts).max()
}

fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Buffers {
    /// `[experts, places, …]`, or the same with both in one.
    fn holds(&self, shape: &[u64]) -> bool {
        match shape {
            [experts, places, _] => *experts == self.experts && *places == self.places,
            [rows, _] => *rows == self.experts.saturating_mul(self.places),
            _ => false,
        }
    }
}
