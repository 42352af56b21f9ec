//! Attention: its matrices, its heads, its cache.

use anatomy::bytes;
use recording::Category;
use recording::facts::word;

use super::question::is_inside;
use super::seen::first_size;
use super::words::Said;
use super::{Effect, Question, Reply, Try};
use crate::label::Label;
use crate::remedies::row;
use crate::scene::sum;

pub(super) fn fused(question: &Question<'_>) -> Reply {
    if question.is_without() {
        return eager(question);
    }
    let label = question.label(const { row("fused-attention") });
    match question.finding("attention-matrices") {
        Some(finding) => {
            let why = format!(
                "the matrices of attention take {}; a fused kernel keeps none of them",
                question.share(finding.bytes)
            );
            let copies = question.finding("duplicates").map_or(0, |finding| finding.bytes);
            // Copies of queries and keys that lie right for a product go with the product.
            question
                .at_most(finding.bytes.saturating_add(copies), label, why)
                .tried_by(Try::Lever("fused-attention"))
        }
        None => Reply::none(label, no_matrix(question)),
    }
}

fn no_matrix(question: &Question<'_>) -> String {
    let is_fused = !question.anatomy().facts.of("sdpa").is_empty();
    let already = if is_fused { ": scaled_dot_product_attention runs already" } else { "" };
    format!("no matrix of attention worth naming is alive at the peak{already}")
}

/// With its matrices written out.
pub(super) fn eager(question: &Question<'_>) -> Reply {
    let label = Label::NumericallyEqual;
    if question.words.has("eager attention")
        || question.words.has("naive attention")
        || question.words.has("vanilla attention")
        || question.words.has("math attention")
    {
        // `without naive attention` is the fused one.
        if question.is_without() {
            return match question.finding("attention-matrices") {
                Some(finding) => {
                    let why =
                        format!("the matrices of attention take {}", question.share(finding.bytes));
                    question
                        .at_most(finding.bytes, label, why)
                        .tried_by(Try::Lever("fused-attention"))
                }
                None => Reply::none(label, no_matrix(question)),
            };
        }
    }
    if question.finding("attention-matrices").is_some() {
        return Reply::none(label, "attention writes out its matrices already");
    }
    let calls = question.anatomy().facts.of("sdpa");
    // What an evaluation calls too is written once more, at another time, and not kept.
    let trained = || calls.iter().filter(|fact| word(fact, "grad") == Some("yes"));
    let matrices: Vec<u64> = trained().filter_map(|fact| matrix(fact)).collect();
    let largest = || calls.iter().filter_map(|fact| matrix(fact)).max();
    let matrices = if matrices.is_empty() { largest().into_iter().collect() } else { matrices };
    // A batch is at least one example; which of the calls a training keeps, a run tells.
    let examples = first_size(question);
    let all = sum(matrices.iter().copied()).saturating_mul(examples.unwrap_or(1));
    match matrices.len() {
        0 => Reply::none(label, "no fused attention was seen, so nothing would change"),
        count if question.is_worth(all) => {
            let why = format!(
                "{} would write out its matrix of pairs, {} in all for {}; a training keeps those of layers that are not \
                 checkpointed",
                if count == 1 { "a call".to_owned() } else { format!("each of {count} calls") },
                bytes::text(all),
                match examples {
                    Some(batch) => format!("a batch of {batch}"),
                    None => "one example".to_owned(),
                }
            );
            Reply::worse(label, why)
        }
        _ => Reply::new(
            Effect::Unknown,
            Some(label),
            format!(
                "its matrices would be {}; `fathom run` measures what they add",
                bytes::text(all)
            ),
        ),
    }
}

/// Bytes of the matrix that one fused call does not write: its heads × queries × keys for one example.
fn matrix(fact: &str) -> Option<u64> {
    let number = |key: &str| -> Option<u64> { word(fact, key)?.parse().ok() };
    let size = if fact.contains("dtype=float32") { 4u64 } else { 2 };
    number("heads")?.checked_mul(number("q")?)?.checked_mul(number("k")?)?.checked_mul(size)
}

/// The width of a head now: of the layer by its weights, divided by its heads.
fn head_dim_now(question: &Question<'_>) -> Option<u64> {
    let tensors = || question.anatomy().allocated_peak.tensors.iter();
    let (heads, module) = tensors().find_map(|tensor| match tensor.shape.as_slice() {
        [_, heads, rows, columns] if rows == columns && tensor.category != Category::Inputs => {
            Some((*heads, tensor.origin.module.as_str()))
        }
        _ => None,
    })?;
    let of_layer = tensors().filter(|tensor| {
        tensor.category == Category::Weights
            && is_inside(&tensor.origin.module, module)
            && !module.is_empty()
    });
    let mut widths = of_layer.filter_map(|tensor| match tensor.shape.as_slice() {
        [rows, columns] => Some(*rows.min(columns)),
        _ => None,
    });
    let first = widths.next()?;
    let is_one = widths.all(|other| other == first) && heads != 0 && first.is_multiple_of(heads);
    is_one.then(|| first / heads)
}

pub(super) fn head_dim(question: &Question<'_>) -> Reply {
    let label = Label::ChangesFunction;
    let Some(finding) = question.finding("attention-matrices") else {
        let why = "no matrix of attention is written out at the peak, so at the same width of the layer the width of a head \
                   changes nothing there";
        return Reply::none(label, why);
    };
    let (target, was) = question.words.numbers(&question.span);
    let now = was.or_else(|| head_dim_now(question));
    let is_smaller = match (target, now, question.said()) {
        (Some(target), Some(now), _) if target == now => {
            return Reply::none(label, format!("the width of a head is {now} now"));
        }
        (Some(target), Some(now), _) => Some(target < now),
        (None, _, Said::Less) => Some(true),
        (None, _, Said::More) => Some(false),
        _ => None,
    };
    let is_now = now.map_or(String::new(), |now| format!("the width of a head is {now}; "));
    let why = format!(
        "{is_now}the matrices of attention take {}, tokens × tokens for each head: at the same width of the layer smaller \
         heads are more heads, and half the width doubles the matrices",
        bytes::text(finding.bytes)
    );
    match is_smaller {
        Some(true) => Reply::worse(label, why),
        Some(false) => question.at_most(finding.bytes, label, why),
        None => Reply::new(
            Effect::Unknown,
            Some(label),
            format!("{why}; the width of a head now is not known"),
        ),
    }
}

pub(super) fn heads(question: &Question<'_>) -> Reply {
    let label = Label::ChangesFunction;
    let Some(finding) = question.finding("attention-matrices") else {
        let kv = question.of(Category::KvCache);
        if question.is_worth(kv) {
            let why = format!(
                "keys and values of earlier tokens take {}: fewer heads of keys and values make them less",
                question.share(kv)
            );
            return question.at_most(kv, label, why);
        }
        let why = "no matrix of attention is written out at the peak, so at the same width of the layer the number of heads \
                   changes nothing worth naming there";
        return Reply::none(label, why);
    };
    let now = finding.evidence.first().and_then(|row| match row.shape.as_slice() {
        [_, heads, _, _] => Some(*heads),
        _ => None,
    });
    let (target, was) = question.words.numbers(&question.span);
    let why = format!(
        "the matrices of attention take {}, one for each head",
        question.share(finding.bytes)
    );
    match (target, was.or(now), question.said()) {
        (Some(target), Some(now), _) if now < target => Reply::worse(label, why),
        (Some(target), Some(now), _) if target == now => {
            Reply::none(label, format!("it has {now} heads now"))
        }
        (Some(_), Some(_), _) | (None, _, Said::Less | Said::Plain) => {
            question.at_most(finding.bytes, label, why)
        }
        (None, _, Said::More) => Reply::worse(label, why),
        _ => Reply::new(
            Effect::Unknown,
            Some(label),
            format!("{why}; how many heads there are now is not known"),
        ),
    }
}

/// Fewer heads of keys and values than of queries.
pub(super) fn grouped(question: &Question<'_>) -> Reply {
    let label = Label::ChangesFunction;
    let cache = question.of(Category::KvCache);
    if question.is_worth(cache) {
        let why = format!("keys and values of earlier tokens take {}", question.share(cache));
        return question.at_most(cache, label, why);
    }
    let matrices = match question.finding("attention-matrices") {
        Some(finding) => format!(
            "the matrices of attention, {}, stay: one for each head of queries; ",
            question.share(finding.bytes)
        ),
        None => String::new(),
    };
    let why = format!(
        "{matrices}fewer heads of keys and values make these two smaller, and what their layers keep; how much, `fathom run` \
         measures with the change made"
    );
    Reply::new(Effect::Unknown, Some(label), why)
}

/// Attention that does not look at all pairs.
pub(super) fn other(question: &Question<'_>) -> Reply {
    let label = Label::ChangesFunction;
    if question.of(Category::KvCache) != 0 {
        return kv_cache(question);
    }
    match question.finding("attention-matrices") {
        Some(finding) => {
            let why = format!(
                "the matrices of attention take {}; code that masks them writes them out as before, only a kernel that \
                 leaves pairs out does not",
                question.share(finding.bytes)
            );
            question.at_most(finding.bytes, label, why)
        }
        None => Reply::none(label, no_matrix(question)),
    }
}

pub(super) fn kv_cache(question: &Question<'_>) -> Reply {
    let label = question.label(const { row("quantised-cache") });
    let held = question.of(Category::KvCache);
    if held == 0 {
        return Reply::none(label, "no keys and values of earlier tokens are alive at the peak");
    }
    let why =
        format!("keys and values of earlier tokens take {} at the peak", question.share(held));
    let asks_static = question.words.has("static cache");
    match asks_static {
        true => Reply::new(
            Effect::Unknown,
            Some(Label::NumericallyEqual),
            format!(
                "{why}; a static cache has its full length from the start but is not copied while it grows: `fathom run` measures which is less"
            ),
        ),
        false => question.at_most(held, label, why),
    }
}

/// `is it attention?`
pub(super) fn matrices(question: &Question<'_>) -> Reply {
    match question.finding("attention-matrices") {
        Some(finding) => Reply::fact(format!(
            "{}: {}. {}",
            finding.title,
            question.share(finding.bytes),
            finding.explanation
        )),
        None => {
            Reply::fact(format!("{}: attention's matrices are not the cause", no_matrix(question)))
        }
    }
}
