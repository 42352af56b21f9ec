//! Hugging Face's text-generation-inference and LoRAX: the batch of the warm-up, the largest they allow, has no room.

use super::{Family, Head, Memory, Step, Window, reading};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "tgi",
    speaker: "the server",
    kind: Kind::Server,
    memory: Memory::Device,
    means: "before it serves, it runs one batch of as many tokens as its flags allow, and beside the weights the GPU had \
            no room for that. The refusal itself is PyTorch's, further up in the log, and has numbers",
    facts: &[],
    raises: true,
    heads: &[Head {
        words: "notenoughmemorytohandle",
        near: 0,
        fits: |place| place.near(80).contains("tokens"),
    }],
    fill,
    steps,
};

/// `Not enough memory to handle 16000 total tokens with 2 prefill tokens.`
fn fill(account: &mut Account, window: &Window<'_>) {
    let rest = reading::rest(window.text, window.head).unwrap_or_default();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let name = match rest[digits..].starts_with("totaltokens") {
        true => "total_tokens",
        false => "prefill_tokens",
    };
    reading::count(account, name, reading::whole(rest));
}

fn steps(account: &Account) -> Vec<Step> {
    let Some(count) = account.counts.first() else { return Vec::new() };
    let flag = match count.name {
        "total_tokens" => "--max-batch-total-tokens",
        _ => "--max-batch-prefill-tokens",
    };
    vec![Step {
        why: "half of it",
        command: format!("text-generation-launcher --model-id MODEL {flag} {}", count.value / 2),
    }]
}
