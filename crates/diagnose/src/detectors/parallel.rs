//! `nn.DataParallel`: replicas of the model in every step, and all results on the first card.

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

/// What replicates, scatters and gathers.
const OPERATORS: [&str; 6] = [
    "_broadcast_coalesced",
    "_scatter",
    "_gather",
    "BroadcastBackward",
    "GatherBackward",
    "_broadcast",
];

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let is_used = scene.anatomy.modules.iter().any(|(_, class)| class == "DataParallel");
    let is_its_own = |thing: &Thing<'_>| {
        let origin = &thing.tensor.origin;
        is_used
            && OPERATORS
                .iter()
                .any(|name| [&origin.operator, &origin.node].iter().any(|of| of.starts_with(name)))
    };
    let members = claims.free(scene, |thing| thing.is_of_a_pass() && is_its_own(thing));
    let Some(finding) = claims.finding(scene, "data-parallel", &members) else { return Vec::new() };
    vec![Finding {
        title: "DataParallel copies the model and gathers results in every step".to_owned(),
        explanation: "The first card sends replicas of the parameters to the others and collects \
                      outputs and losses, so it needs more than they do."
            .to_owned(),
        scales: "parameters, batch".to_owned(),
        remedies: remedies(&["distributed"]),
        ..finding
    }]
}
