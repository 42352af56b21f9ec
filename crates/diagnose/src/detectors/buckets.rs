//! `DistributedDataParallel`: buckets in which gradients are summed over processes.

use recording::Category;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

/// What the recorder calls them; in files without names the place they were made at tells.
const BUCKETS: &str = "gradient buckets";

/// The wrapper makes them below Python, so no operator is seen; where gradients are views of them, they
/// are named as gradients.
pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let is_wrapper = |path: &str| scene.class(path) == "DistributedDataParallel";
    if !scene.anatomy.modules.iter().any(|(path, _)| is_wrapper(path)) {
        return Vec::new();
    }
    let is_bucket = |thing: &Thing<'_>| {
        if thing.is(Category::Communication) {
            return thing.tensor.name.starts_with(BUCKETS);
        }
        let origin = &thing.tensor.origin;
        let has_no_maker = origin.operator.is_empty() && origin.node.is_empty();
        has_no_maker && (origin.module.is_empty() || is_wrapper(&origin.module))
    };
    let members = claims.free(scene, |thing| {
        (thing.is_of_a_pass() || thing.is(Category::Communication))
            && !thing.is(Category::Activations)
            && is_bucket(thing)
    });
    let Some(finding) = claims.finding(scene, &members) else {
        return Vec::new();
    };
    vec![Finding {
        title: "DistributedDataParallel holds the gradients a second time, in buckets".to_owned(),
        explanation:
            "Gradients are copied into buckets to be summed over processes, and back; both stay."
                .to_owned(),
        scales: "trainable parameters".to_owned(),
        remedies: remedies!(scene, "bucket-view"),
        ..finding
    }]
}
