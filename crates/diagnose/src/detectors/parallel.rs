//! `nn.DataParallel`: replicas of the model in every step, and all results on the first card.

use std::collections::BTreeSet;

use recording::Category;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

/// Backward passes of replicating and gathering.
const NODES: [&str; 3] = ["BroadcastBackward", "ScatterBackward", "GatherBackward"];

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let is_wrapper = |path: &str| scene.class(path) == "DataParallel";
    // The wrapper itself does nothing but replicate, scatter and gather; its functions have no names.
    let is_its_own = |thing: &Thing<'_>| {
        let node = &thing.tensor.origin.node;
        is_wrapper(thing.module())
            && (node.is_empty() || NODES.iter().any(|name| node.starts_with(name)))
    };
    let is_used = scene.things.iter().any(|thing| is_wrapper(thing.module()));
    let weights: BTreeSet<&[u64]> =
        scene.things.iter().filter(is_weight).map(Thing::shape).collect();
    // On their way to the parameters: else the kernels of convolutions would look like maps.
    let is_gradient_of_replica = |thing: &Thing<'_>| {
        is_used
            && thing.is(Category::Temporaries)
            && thing.operator().is_empty()
            && !thing.tensor.origin.node.is_empty()
            && weights.contains(thing.shape())
    };
    let members = claims.free(scene, |thing| {
        thing.is_of_a_pass() && (is_its_own(thing) || is_gradient_of_replica(thing))
    });
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    vec![Finding {
        title: "DataParallel copies the model and gathers results in every step".to_owned(),
        explanation: "The first card sends replicas of the parameters to the others and collects \
                      outputs and gradients, so it needs more than they do."
            .to_owned(),
        scales: "parameters, batch".to_owned(),
        remedies: remedies!(scene, "distributed"),
        ..finding
    }]
}

fn is_weight(thing: &&Thing<'_>) -> bool {
    thing.is(Category::Weights) && !thing.shape().is_empty()
}
