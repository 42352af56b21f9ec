//! Small maps enlarged, and kept at the large size for a convolution.

use anatomy::bytes;
use recording::Category;

use crate::finding::Finding;
use crate::phrases::{modules, place, plural, tensor};
use crate::remedies::remedies;
use crate::roles::{Role, role};
use crate::scene::{Claims, Scene, Thing};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let facts = &scene.anatomy.facts;
    // The graph says what made a convolution's input: under autocast a cast of the enlarged map is kept.
    let is_for = |thing: &Thing<'_>| {
        thing.users.iter().any(|user| {
            role(user.node) == Role::Convolution
                && user.field == "input"
                && facts.has("upsampled", user.module)
        })
    };
    let members = claims.free(scene, |thing| thing.is(Category::Activations) && is_for(thing));
    let Some(finding) = claims.finding(scene, &members) else {
        return Vec::new();
    };
    let largest = &scene.things[members[0]];
    let count = members.len() as u64;
    vec![Finding {
        title: "enlarged maps are kept as inputs of convolutions".to_owned(),
        explanation: format!(
            "{count} map{} made by interpolation {}, {} at {} the largest ({}). Each is a small map \
             written out at the size of another.",
            plural(count),
            modules(scene, &members),
            tensor(&largest.tensor.dtype, largest.shape()),
            place(largest.line()),
            bytes::text(largest.tensor.bytes)
        ),
        scales: "batch × channels × height × width".to_owned(),
        remedies: remedies!(scene, "checkpoint", "conv-before-upsampling"),
        ..finding
    }]
}
