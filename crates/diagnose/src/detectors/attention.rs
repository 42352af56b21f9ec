//! Attention whose matrix of tokens × tokens is written out.

use std::collections::BTreeSet;

use recording::facts::word;

use crate::finding::Finding;
use crate::phrases::{modules, place, tensor};
use crate::remedies::remedies;
use crate::roles::Role;
use crate::scene::{Claims, Scene, Thing, sum};

/// A module, and of its matrices rows, columns and elements: scores, masks, dropout and gradients share them.
type Matrix<'a> = (&'a str, u64, u64, u64);

/// More than any model has heads: what is larger is no list of them.
const HEADS: u64 = 64;

/// Products of one matrix after the other; that of a linear layer is none, whatever its sizes.
const PRODUCTS: [&str; 5] = ["bmm", "baddbmm", "matmul", "__matmul__", "einsum"];

const BY_ITSELF: &str = "The code multiplies, takes the softmax and multiplies by itself: no fused kernel is asked for.";

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let anchors =
        claims.free(scene, |thing| is_probabilities(scene, thing) || is_scores(scene, thing));
    let matrices: BTreeSet<Matrix<'_>> =
        anchors.iter().filter_map(|index| matrix(&scene.things[*index])).collect();
    let members = claims.free(scene, |thing| {
        thing.is_of_a_pass() && matrix(thing).is_some_and(|own| matrices.contains(&own))
    });
    let members = claims.with_shapeless(scene, members);
    if anchors.is_empty() {
        return Vec::new();
    }
    let Some(finding) = claims.finding(scene, &members) else {
        return Vec::new();
    };
    let first = &scene.things[anchors[0]];
    let (_, rows, columns, _) = matrix(first).unwrap_or_default();
    let why = why_not_fused(scene, first);
    let mut remedies = remedies!(scene, "fused-attention", "checkpoint");
    if is_asked_for(scene, first) {
        remedies[0].change = "need_weights=False where nn.MultiheadAttention is called".to_owned();
    }
    vec![Finding {
        title: format!("attention writes out its matrices of {rows} × {columns} tokens"),
        explanation: format!(
            "{} at {} {}. {}",
            tensor(&first.tensor.dtype, first.shape()),
            place(first.line()),
            modules(scene, &members),
            why
        ),
        // That the code does it by itself, everybody who wrote it knows.
        note: if why == BY_ITSELF { String::new() } else { why.trim_end_matches('.').to_owned() },
        scales: "batch × heads × tokens²".to_owned(),
        remedies,
        ..finding
    }]
}

/// The result of a softmax over tokens: multiplied with values later, or large and in a module for attention.
fn is_probabilities(scene: &Scene<'_>, thing: &Thing<'_>) -> bool {
    let is_softmax = thing.made_by() == Role::Softmax || thing.is_kept_for(Role::Softmax);
    let Some((module, rows, columns, _)) = matrix(thing) else { return false };
    is_softmax
        && thing.is_of_a_pass()
        && !is_linear(scene, module)
        && (is_multiplied(thing) || (is_attention(scene, module) && HEADS < rows.min(columns)))
}

/// Matrices are, one by the other; linear layers have other nodes.
fn is_multiplied(thing: &Thing<'_>) -> bool {
    thing.users.iter().any(|user| user.node.contains("Bmm"))
}

/// Bytes of products of queries and keys, be they a finding or not.
pub(crate) fn scores(scene: &Scene<'_>) -> u64 {
    let all = scene.things.iter().filter(|thing| is_scores(scene, thing));
    sum(all.map(|thing| thing.tensor.block))
}

/// Every token by every token, in a module for attention, before a softmax has made probabilities of it.
fn is_scores(scene: &Scene<'_>, thing: &Thing<'_>) -> bool {
    let Some((module, rows, columns, _)) = matrix(thing) else { return false };
    PRODUCTS.contains(&thing.tensor.origin.operator.as_str())
        && thing.is_of_a_pass()
        && rows == columns
        && HEADS < rows
        // What comes out of linear attention over a square image has its height and width.
        && (is_multiplied(thing) || !thing.is_kept_for_a_layer())
        && is_attention(scene, module)
}

/// Attention without a matrix of tokens: softmaxes of queries and keys alone, features × tokens.
fn is_linear(scene: &Scene<'_>, path: &str) -> bool {
    scene.class(path).to_ascii_lowercase().contains("linear")
}

/// Does its class or its name say so?
fn is_attention(scene: &Scene<'_>, path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or_default();
    [scene.class(path), name].iter().any(|text| {
        let text = text.to_ascii_lowercase();
        text.contains("attention") || text.contains("attn")
    })
}

/// The last two sizes of a shape with a batch in front, if they are worth being a matrix of tokens.
fn matrix<'a>(thing: &Thing<'a>) -> Option<Matrix<'a>> {
    match thing.shape() {
        [_, .., rows, columns] if 1 < *rows && 1 < *columns => {
            Some((thing.module(), *rows, *columns, thing.elements()?))
        }
        _ => None,
    }
}

/// Whether `nn.MultiheadAttention` gives its matrix to who calls it.
fn is_asked_for(scene: &Scene<'_>, thing: &Thing<'_>) -> bool {
    scene.anatomy.facts.has("weights_wanted", thing.module())
}

/// Why no kernel was taken that keeps no matrix.
fn why_not_fused(scene: &Scene<'_>, thing: &Thing<'_>) -> String {
    let facts = &scene.anatomy.facts;
    if is_asked_for(scene, thing) {
        return "nn.MultiheadAttention was asked for its weights (need_weights=True is its default), so \
                it cannot use a fused kernel."
            .to_owned();
    }
    let call = facts.of("sdpa").iter().find(|call| word(call, "module") == Some(thing.module()));
    let Some(call) = call else {
        return BY_ITSELF.to_owned();
    };
    let number = |key| word(call, key).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let reason = plain_path(
        word(call, "dtype").unwrap_or_default(),
        number("dim"),
        word(call, "groups").is_some() && number("groups") != number("heads"),
        word(call, "mask") != Some("no"),
    );
    format!("scaled_dot_product_attention took its plain path: {reason}.")
}

/// What rules out the fused backends. As seen with torch 2.6, 2.13 and 2.15: the memory-efficient one takes
/// any mask and any width whose rows are aligned, but not float64, and grouped heads only since 2.15; flash
/// attention takes half precision, heads up to 256, which it pads, and no mask.
fn plain_path(dtype: &str, dim: u64, is_grouped: bool, has_mask: bool) -> String {
    match dtype {
        "float64" => "its tensors are float64".to_owned(),
        "float32" if !dim.is_multiple_of(4) => {
            format!("a head of {dim} is no multiple of 4, as float32 needs")
        }
        "float16" | "bfloat16" if 256 < dim && !dim.is_multiple_of(8) => {
            format!("a head of {dim} is wider than 256 and no multiple of 8")
        }
        _ if is_grouped => "queries share heads of keys (enable_gqa)".to_owned(),
        _ if has_mask => {
            "a mask is given, and the one backend that takes masks is switched off".to_owned()
        }
        _ => "the fused backends are switched off or not built for this card".to_owned(),
    }
}
