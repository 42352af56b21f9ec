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
    let held = question.bytes(|tensor| is_norm(&tensor.origin.module));
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
