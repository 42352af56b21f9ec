//! What modules keep in buffers.

use recording::Category;

use crate::finding::Finding;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let members = claims.free(scene, |thing| thing.is(Category::Buffers));
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    vec![Finding {
        title: "buffers of modules".to_owned(),
        explanation:
            "Tensors that modules keep besides their parameters: statistics, tables, masks."
                .to_owned(),
        scales: "the model".to_owned(),
        ..finding
    }]
}
