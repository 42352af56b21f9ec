//! Private pools: memory that CUDA graphs hold for themselves.

use crate::finding::{Finding, Whole};
use crate::phrases::plural;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, _: &mut Claims) -> Vec<Finding> {
    let at = &scene.anatomy.reserved_peak;
    if !scene.is_worth(at.private.bytes) {
        return Vec::new();
    }
    let pools = at.private.pools;
    vec![Finding {
        title: format!("CUDA graphs hold {pools} private pool{}", plural(pools)),
        bytes: at.private.bytes,
        of: Whole::Reserved,
        explanation: "What runs while a graph is captured gets its memory there, and every replay uses the same \
                      addresses: it stays reserved as long as the graph lives, and nothing outside of graphs can \
                      use what is free in it."
            .to_owned(),
        scales: "what the captured code keeps and makes, for each shape that is captured".to_owned(),
        ..Finding::default()
    }]
}
