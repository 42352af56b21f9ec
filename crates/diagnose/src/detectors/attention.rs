//! Attention whose matrix of tokens × tokens is written out.

use std::collections::BTreeSet;

use recording::facts::word;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::roles::{Role, role};
use crate::scene::{Claims, Scene, Thing};
use crate::words::{modules, place, tensor};

/// Rows and columns of the matrices, and the module that has them.
type Matrix<'a> = (&'a str, u64, u64);

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let anchors = claims.free(scene, |thing| is_probabilities(scene, thing));
    let matrices: BTreeSet<Matrix<'_>> =
        anchors.iter().filter_map(|index| matrix(&scene.things[*index])).collect();
    // Scores, masks, dropout and gradients of the same matrices are in the same module.
    let members = claims.free(scene, |thing| {
        thing.is_of_a_pass() && matrix(thing).is_some_and(|own| matrices.contains(&own))
    });
    if anchors.is_empty() {
        return Vec::new();
    }
    let Some(finding) = claims.finding(scene, "attention-matrices", &members) else {
        return Vec::new();
    };
    let first = &scene.things[anchors[0]];
    let (_, rows, columns) = matrix(first).unwrap_or_default();
    vec![Finding {
        title: format!("attention writes out its matrices of {rows} × {columns} tokens"),
        explanation: format!(
            "{} at {} {}. {}",
            tensor(&first.tensor.dtype, first.shape()),
            place(first.line()),
            modules(scene, &members),
            why_not_fused(scene, first)
        ),
        scales: "batch × heads × tokens²".to_owned(),
        remedies: remedies(&["fused-attention", "checkpoint"]),
        ..finding
    }]
}

/// The result of a softmax over tokens: in a module for attention, or multiplied with values later.
fn is_probabilities(scene: &Scene<'_>, thing: &Thing<'_>) -> bool {
    let is_softmax = thing.made_by() == Role::Softmax
        || thing.is_kept_for(Role::Softmax)
        || (thing.operator().contains("scaled_dot_product") && thing.made_by_softmax());
    let is_multiplied = thing.users.iter().any(|user| user.node.contains("Bmm"));
    let is_attention = |path: &str| {
        let class = scene.class(path).to_ascii_lowercase();
        let name = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        class.contains("attention")
            || class.contains("attn")
            || name.contains("attn")
            || name.contains("attention")
    };
    is_softmax
        && thing.is_of_a_pass()
        && matrix(thing).is_some()
        && (is_multiplied || is_attention(thing.module()))
}

impl Thing<'_> {
    fn made_by_softmax(&self) -> bool {
        self.users.iter().any(|user| role(user.node) == Role::Softmax)
    }
}

/// The last two sizes of a shape with a batch in front, if they are worth being a matrix of tokens.
fn matrix<'a>(thing: &Thing<'a>) -> Option<Matrix<'a>> {
    match thing.shape() {
        [_, .., rows, columns] if 1 < *rows && 1 < *columns => {
            Some((thing.module(), *rows, *columns))
        }
        _ => None,
    }
}

/// Why no kernel was taken that keeps no matrix.
fn why_not_fused(scene: &Scene<'_>, thing: &Thing<'_>) -> String {
    let facts = &scene.anatomy.facts;
    if facts.has("weights_wanted", thing.module()) {
        return "nn.MultiheadAttention was asked for its weights (need_weights=True is its default), so \
                it cannot use a fused kernel."
            .to_owned();
    }
    let call = facts.of("sdpa").iter().find(|call| word(call, "module") == Some(thing.module()));
    let Some(call) = call else {
        return "The code multiplies, takes the softmax and multiplies by itself: no fused kernel is \
                asked for."
            .to_owned();
    };
    let number = |key| word(call, key).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let reason = match (word(call, "mask"), word(call, "dtype"), number("dim")) {
        (Some("learned"), ..) => "its mask needs a gradient".to_owned(),
        (_, Some("float64"), _) => "its tensors are float64".to_owned(),
        (_, _, dim) if 256 < dim => format!("a head of {dim} is wider than 256"),
        (_, _, dim) if dim % 8 != 0 => format!("a head of {dim} is no multiple of 8"),
        (Some("yes"), ..) => {
            "a mask is given, and the backends that allow one were not taken".to_owned()
        }
        _ => "the fused backends are switched off or not built for this card".to_owned(),
    };
    format!("scaled_dot_product_attention took its plain path: {reason}.")
}
