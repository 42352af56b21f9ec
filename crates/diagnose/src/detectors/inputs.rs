//! What the script brings to the card, and what modules keep in buffers.

use recording::Category;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let inputs = (
        "inputs",
        "inputs and other data on the card",
        "What the script makes on the card outside of modules, or brings there.",
        "batch",
    );
    let buffers = (
        "buffers",
        "buffers of modules",
        "Tensors that modules keep besides their parameters: statistics, tables, masks.",
        "the model",
    );
    let kinds =
        [(Category::Inputs, inputs, &["inputs", "batch"][..]), (Category::Buffers, buffers, &[])];
    let mut findings = Vec::new();
    for (category, (id, title, explanation, scales), ids) in kinds {
        let members = claims.free(scene, |thing| thing.is(category));
        findings.extend(claims.finding(scene, id, &members).map(|finding| Finding {
            title: title.to_owned(),
            explanation: explanation.to_owned(),
            scales: scales.to_owned(),
            remedies: remedies(ids),
            ..finding
        }));
    }
    findings
}
