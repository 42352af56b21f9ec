//! Training over several ranks: weights gathered for use, and buffers that are sent and received.

use anatomy::bytes;
use recording::Category;

use crate::finding::Finding;
use crate::scene::{Claims, Scene};

const KINDS: [(Category, &str); 2] = [
    (Category::Unsharded, "weights gathered for use"),
    (Category::Communication, "buffers of collectives"),
];

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let is_ours = |category: Category| KINDS.iter().any(|(kind, _)| *kind == category);
    let members = claims.free(scene, |thing| is_ours(thing.tensor.category));
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let part = |(category, words): (Category, &str)| {
        let of = scene.part(&members, |thing| thing.is(category));
        let sum = scene.bytes(&of);
        (sum != 0).then(|| format!("{words} {}", bytes::text(sum)))
    };
    let parts: Vec<String> = KINDS.into_iter().filter_map(part).collect();
    vec![Finding {
        title: "what ranks gather, send and receive".to_owned(),
        explanation: format!(
            "{}. It depends on the largest unit that is sharded and on how far ahead the next is \
             gathered, hardly on the number of ranks.",
            parts.join(", ")
        ),
        scales: "parameters of a unit".to_owned(),
        ..finding
    }]
}
