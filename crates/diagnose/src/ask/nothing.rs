//! What takes none of the card's memory, whatever people hope.

use recording::Category;

use super::{Question, Reply};
use crate::label::Label;

pub(super) fn host(_: &Question<'_>) -> Reply {
    Reply::none(Label::Exact, "that is the host's memory, not the card's")
}

pub(super) fn no_memory(question: &Question<'_>) -> Reply {
    match question.finding("growth") {
        Some(finding) => Reply::unknown(format!(
            "{}: more steps are more memory here; `fathom run --steps N` tells",
            finding.title
        )),
        None => Reply::none(
            Label::ChangesTraining,
            "it changes numbers or how long the training takes, and no tensor's size",
        ),
    }
}

pub(super) fn clipping(question: &Question<'_>) -> Reply {
    let why =
        format!("it scales the gradients in place, with or without it; {}", question.moment());
    Reply::none(Label::ChangesTraining, why)
}

pub(super) fn tf32(_: &Question<'_>) -> Reply {
    Reply::none(
        Label::ChangesNumerics,
        "TF32 rounds inside of matrix products: tensors keep four bytes a number",
    )
}

pub(super) fn batch_norm(question: &Question<'_>) -> Reply {
    let is_norm = |module: &str| {
        question
            .anatomy()
            .modules
            .iter()
            .any(|(path, class)| path == module && class.contains("BatchNorm"))
    };
    // What it keeps, the layer before it has made.
    let is_kept_for = |name: &str| name.contains("BatchNorm");
    let held = question.bytes(|tensor| {
        is_norm(&tensor.origin.module)
            || is_kept_for(&tensor.name)
            || tensor.also.iter().any(|(_, name)| is_kept_for(name))
    });
    let why = format!("what batch norms hold and keep is {}", question.share(held));
    question.at_most(held, Label::ChangesFunction, why)
}

pub(super) fn dataset(question: &Question<'_>) -> Reply {
    let inputs = question.of(Category::Inputs);
    match question.is_worth(inputs.saturating_mul(10) / 10) && inputs > question.allocated() / 10 {
        true => Reply::unknown(format!(
            "inputs take {}: if the whole data set lies on the card, its size counts; `fathom run` with another one tells",
            question.share(inputs)
        )),
        false => Reply::none(
            Label::ChangesTraining,
            "the card sees one batch at a time: how many there are takes no memory",
        ),
    }
}

/// A norm in the place of another keeps something else.
pub(super) fn other_norm(question: &Question<'_>) -> Reply {
    let kept = question.bytes(|tensor| {
        let is_of_norm = |name: &str| name.contains("Norm");
        is_of_norm(&tensor.name) || tensor.also.iter().any(|(_, name)| is_of_norm(name))
    });
    Reply::unknown(format!(
        "what norms keep is {}; what another one keeps, `fathom run` measures with the change made",
        question.share(kept)
    ))
}
