//! Logits and the loss over them.

use super::{Effect, Question, Reply, Try};
use crate::label::Label;
use crate::remedies::row;

pub(super) fn fused(question: &Question<'_>) -> Reply {
    let label = question.label(const { row("chunked-cross-entropy") });
    if question.is_without() {
        return match question.finding("loss-gradients") {
            Some(_) => Reply::new(
                Effect::Unknown,
                Some(label),
                "a loss in chunks runs now; without it logits are written out: `fathom run` measures it",
            ),
            None => Reply::none(label, "no loss in chunks was seen, so nothing would change"),
        };
    }
    match question.finding("loss-logits") {
        Some(finding) => {
            let why = format!(
                "{}: {}; a loss in chunks keeps none of them",
                finding.title,
                question.share(finding.bytes)
            );
            question
                .at_most(finding.bytes, label, why)
                .tried_by(Try::Lever("chunked-cross-entropy"))
        }
        None => Reply::none(
            label,
            format!("no logits worth naming are alive at the peak: {}", question.moment()),
        ),
    }
}

/// Liger's kernels: the loss, and functions that keep less.
pub(super) fn liger(question: &Question<'_>) -> Reply {
    let logits = question.finding("loss-logits").map_or(0, |finding| finding.bytes);
    let kept = question.of(recording::Category::Activations);
    let why = format!(
        "its loss keeps no logits, {} here, and its norms and gates keep less of the activations, {}",
        anatomy::bytes::text(logits),
        anatomy::bytes::text(kept)
    );
    let most =
        logits.saturating_add(kept).saturating_add(question.of(recording::Category::Temporaries));
    let reply = question.at_most(most, Label::NumericallyEqual, why);
    if logits == 0 { reply } else { reply.tried_by(Try::Lever("chunked-cross-entropy")) }
}

/// `is it the logits?`
pub(super) fn logits(question: &Question<'_>) -> Reply {
    match question.finding("loss-logits") {
        Some(finding) => Reply::fact(format!(
            "{}: {}. {}",
            finding.title,
            question.share(finding.bytes),
            finding.explanation
        )),
        None => Reply::fact(format!(
            "no logits worth naming are alive at the peak; {}",
            question.moment()
        )),
    }
}
