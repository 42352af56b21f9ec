//! Autocast's copies of the weights.

use recording::Category;

use crate::finding::Finding;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let members = claims.free(scene, |thing| thing.is(Category::Casts));
    let Some(finding) = claims.finding(scene, &members) else {
        return Vec::new();
    };
    let dtype = scene.anatomy.facts.of("autocast").first().map_or("half precision", String::as_str);
    vec![Finding {
        title: format!("autocast keeps the weights a second time, in {dtype}"),
        explanation:
            "Each layer's backward pass needs the cast weight, so it stays until then; turning \
                      autocast's cache off does not change that."
                .to_owned(),
        scales: "parameters".to_owned(),
        ..finding
    }]
}
