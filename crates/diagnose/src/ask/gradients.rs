//! Gradients: when they are given back, added up, or not made at all.

use anatomy::bytes;
use recording::{Category, Phase};

use super::{Effect, Question, Reply, Try};
use crate::finding::Finding;
use crate::label::Label;
use crate::remedies::row;

pub(super) fn zero_grad(question: &Question<'_>) -> Reply {
    let label = question.label(const { row("zero-grad") });
    if question.is_without() || question.words.has("set to none false") {
        return kept(question, label);
    }
    match question.finding("gradients-in-forward") {
        Some(Finding { bytes, .. }) => {
            let why = format!(
                "gradients take {} under the forward pass at the peak",
                bytes::text(*bytes)
            );
            question.at_most(*bytes, label, why).tried_by(Try::Lever("zero-grad"))
        }
        None => {
            let why = format!(
                "{}, where gradients of the last step are not in the way",
                question.moment()
            );
            Reply::none(label, why)
        }
    }
}

/// Gradients that are never given back.
fn kept(question: &Question<'_>, label: Label) -> Reply {
    let missing = question.all_gradients().saturating_sub(question.of(Category::Gradients));
    let why = format!(
        "gradients that stay, as zeros or not, lie under the next forward pass; {} of them are not alive at the peak now",
        bytes::text(missing)
    );
    let phase = question.anatomy().allocated_peak.when.phase;
    match phase {
        Some(Phase::Forward | Phase::Backward) if question.is_worth(missing) => {
            Reply::worse(label, why)
        }
        Some(_) => Reply::none(label, format!("{}; {why}", question.moment())),
        None => Reply::new(Effect::Unknown, Some(label), why),
    }
}

pub(super) fn accumulation(question: &Question<'_>) -> Reply {
    let gradients = question.all_gradients();
    let label = question.label(const { row("accumulate") });
    let parts = question.words.numbers(&question.span).0.filter(|parts| (2..=64).contains(parts));
    let why = format!(
        "with the same batch a pass it only adds: from the second batch on gradients ({} in float32) lie under the forward \
         pass. It lowers the peak through the smaller batch that it allows: what follows the batch is {}",
        bytes::text(gradients),
        bytes::text(question.of_data())
    );
    let reply = question.at_most(question.of_data(), label, why);
    match (reply.effect, question.is_without()) {
        (_, true) => Reply { tries: Vec::new(), effect: Effect::Unknown, ..reply },
        (Effect::None, _) => reply,
        _ => reply.tried_by(Try::Accumulate(parts.unwrap_or(2) as u32)),
    }
}

/// `no_grad`, `inference_mode`.
pub(super) fn no_grad(question: &Question<'_>) -> Reply {
    let label = Label::Exact;
    let found = question.finding("evaluation-with-grad").or(question.finding("frozen-layers-save"));
    let phase = question.anatomy().allocated_peak.when.phase;
    let is_trained =
        question.anatomy().phases.iter().any(|row| row.when.phase == Some(Phase::Backward));
    match (found, phase) {
        (Some(finding), _) => {
            let why = format!(
                "{}: {}. {}",
                finding.title,
                bytes::text(finding.bytes),
                finding.explanation
            );
            question.at_most(finding.bytes, label, why)
        }
        (None, _) if !is_trained => {
            let kept = question.of(Category::Activations);
            let why = format!(
                "nothing is trained here, and {} are kept for a backward pass",
                bytes::text(kept)
            );
            question.at_most(kept, label, why)
        }
        (None, _) => {
            let why = format!(
                "{}, a step that is trained: without its graph there is nothing to train. Around an evaluation it frees the \
                 graph there, which is not the peak",
                question.moment()
            );
            Reply::none(label, why)
        }
    }
}

/// `model.eval()` alone keeps the graph.
pub(super) fn eval(question: &Question<'_>) -> Reply {
    if question.words.has("no grad") || question.words.has("inference mode") {
        return no_grad(question);
    }
    let masks = question.bytes(|tensor| {
        tensor.name.contains("Dropout")
            || tensor.also.iter().any(|(_, name)| name.contains("Dropout"))
    });
    let why = format!(
        "it changes what dropout and batch norm do, and keeps the graph all the same: dropout's masks take {}. \
         torch.no_grad() is what keeps no graph",
        bytes::text(masks)
    );
    question.at_most(masks, Label::ChangesFunction, why)
}
