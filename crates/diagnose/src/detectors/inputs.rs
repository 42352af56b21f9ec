//! What the script brings to the card.

use recording::Category;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let members = claims.free(scene, |thing| thing.is(Category::Inputs));
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    vec![Finding {
        title: "inputs and other data on the card".to_owned(),
        explanation: "What the script makes on the card outside of modules, or brings there."
            .to_owned(),
        scales: "batch".to_owned(),
        remedies: remedies!(scene, "inputs", "batch"),
        ..finding
    }]
}
