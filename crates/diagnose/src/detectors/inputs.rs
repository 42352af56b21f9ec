//! What the script brings to the card, and what modules keep in buffers.

use recording::Category;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let kinds = [
        (
            Category::Inputs,
            "inputs",
            "inputs and other data on the card",
            "batch",
            &["inputs", "batch"][..],
        ),
        (Category::Buffers, "buffers", "buffers of modules", "the model", &[]),
    ];
    let mut findings = Vec::new();
    for (category, id, title, scales, ids) in kinds {
        let members = claims.free(scene, |thing| thing.is(category));
        findings.extend(claims.finding(scene, id, &members).map(|finding| Finding {
            title: title.to_owned(),
            explanation: "What the script makes on the card, or brings there.".to_owned(),
            scales: scales.to_owned(),
            remedies: remedies(ids),
            ..finding
        }));
    }
    findings
}
