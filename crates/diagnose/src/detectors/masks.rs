//! Masks of attention that are written out: a number for every pair of tokens, for heads or sequences that share it.

use recording::Category;

use crate::finding::Finding;
use crate::phrases::{place, tensor};
use crate::remedies::remedies;
use crate::roles::{Role, role};
use crate::scene::{Claims, Scene, Thing, User};

/// Fewer tokens are a table of something else.
const TOKENS: u64 = 64;

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let members = claims.free(scene, is_mask);
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let largest = &scene.things[members[0]];
    let each = match largest.shape() {
        [batch, heads, _, _] if 1 < batch * heads => {
            format!(" {batch} sequences × {heads} heads have one each.")
        }
        _ => String::new(),
    };
    vec![Finding {
        title: format!(
            "attention masks are written out, {}",
            tensor(&largest.tensor.dtype, largest.shape())
        ),
        explanation: format!(
            "A mask has a number for each pair of tokens, and autograd keeps it (made at {}).{each} \
             Fused attention needs none to be causal, and it broadcasts one of (batch, 1, 1, tokens).",
            place(largest.line())
        ),
        scales: "tokens², for as many heads and sequences as have one".to_owned(),
        remedies: remedies!(scene, "small-mask"),
        ..finding
    }]
}

fn is_mask(thing: &Thing<'_>) -> bool {
    let [.., rows, columns] = thing.shape() else { return false };
    let is_pairs = TOKENS <= *rows && TOKENS <= *columns;
    let is_free = thing.is_of_a_pass() || thing.is(Category::Inputs);
    is_free && is_pairs && thing.users.iter().any(|user| masks(user, rows == columns))
}

/// Is it a mask for this node?
fn masks(user: &User<'_>, is_square: bool) -> bool {
    match user.field {
        "attn_bias" | "attn_mask" => role(user.node) == Role::FusedAttention,
        "mask" => is_square && user.node.starts_with("MaskedFill"),
        _ => false,
    }
}
