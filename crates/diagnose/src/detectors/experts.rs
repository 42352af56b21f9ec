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
    let is_buffer = |thing: &Thing<'_>| {
        let found = buffers.get(thing.module());
        thing.is_of_a_pass() && found.is_some_and(|of| of.holds(thing.shape()))
    };
    let members = claims.with_shapeless(scene, claims.free(scene, is_buffer));
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let Some(of) = members.iter().find_map(|it| buffers.get(scene.things[*it].module())) else {
        return Vec::new();
    };
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

/// Modules that multiply `[experts, places, …]` with weights `[experts, …, …]` and have a softmax over experts.
fn buffers<'a>(scene: &Scene<'a>) -> BTreeMap<&'a str, Buffers> {
    let mut experts: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for thing in scene.things.iter().filter(|thing| thing.is(Category::Weights)) {
        if let [number, _, _] = thing.shape() {
            experts.entry(thing.module()).or_default().insert(*number);
        }
    }
    let mut found = BTreeMap::new();
    for thing in scene.things.iter().filter(|thing| thing.is_of_a_pass()) {
        let [first, places, _] = thing.shape() else { continue };
        let module = thing.module();
        let is_multiplied = thing.users.iter().any(|user| user.node.starts_with("BmmBackward"));
        if !is_multiplied || !experts.get(module).is_some_and(|sizes| sizes.contains(first)) {
            continue;
        }
        if let Some(tokens) = routed(scene, module, *first).filter(|it| *it < first * places) {
            found.insert(module, Buffers { experts: *first, places: *places, tokens });
        }
    }
    found
}

/// How many tokens a softmax of this module, or of one inside of it, spreads over its experts.
fn routed(scene: &Scene<'_>, module: &str, experts: u64) -> Option<u64> {
    let is_here = |path: &str| {
        path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let is_router = |thing: &&Thing<'_>| {
        thing.shape().last() == Some(&experts)
            && thing.users.iter().any(|user| user.node.starts_with("SoftmaxBackward"))
            && is_here(thing.module())
    };
    let rows = scene.things.iter().filter(is_router).filter_map(Thing::elements);
    rows.map(|elements| elements / experts).max()
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
