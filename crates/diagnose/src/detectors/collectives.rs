//! Training over several ranks: weights gathered for use, and buffers that are sent and received.

use anatomy::bytes;
use recording::Category;

use crate::finding::Finding;
use crate::phrases::plural;
use crate::scene::{Claims, Scene, Thing};

/// What the recorder calls them.
const DEEPSPEED_BUCKETS: &str = "gradient buckets (DeepSpeed)";

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
        explanation: format!("{}. {}", parts.join(", "), rule(scene, &members)),
        scales: "parameters of a unit, or the size of buckets".to_owned(),
        ..finding
    }]
}

/// What decides how large they are: of buckets a setting does, of gathered weights the model.
fn rule(scene: &Scene<'_>, members: &[usize]) -> String {
    let is_bucket = |thing: &Thing<'_>| thing.tensor.name.starts_with(DEEPSPEED_BUCKETS);
    let buckets = scene.part(members, is_bucket);
    let setting = match scene.bytes(&buckets) {
        0 => String::new(),
        size => format!(
            "{} of it are {} bucket{} of DeepSpeed for gradients: `reduce_bucket_size` says how many \
             elements each has, and `overlap_comm` takes a second one.",
            bytes::text(size),
            buckets.len(),
            plural(buckets.len() as u64)
        ),
    };
    let units = match buckets.len() < members.len() {
        true => {
            "It depends on the largest unit that is sharded and on how far ahead the next is gathered, \
                 hardly on the number of ranks."
        }
        false => "",
    };
    [setting.as_str(), units].join(" ").trim().to_owned()
}
