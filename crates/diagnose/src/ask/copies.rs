//! Extra copies of the model, and of its embedding.

use anatomy::bytes;
use recording::Category;

use super::seen::vocabulary_of;
use super::{Question, Reply, Try};
use crate::label::Label;
use crate::remedies::row;

pub(super) fn copies(question: &Question<'_>) -> Reply {
    let copies = question.of(Category::ModelCopies);
    let label = question.label(const { row("ema-cpu") });
    let words = question.words;
    let adds = ["add", "adding", "use", "using", "enable", "with", "keep", "keeping", "turn on"]
        .iter()
        .any(|it| words.has(it));
    let moves = ["cpu", "host", "offload*"].iter().any(|it| words.has(it));
    if ["decay", "every"].iter().any(|it| words.has(it)) && !question.is_without() && !moves {
        let why = format!(
            "a copy is as large whatever its decay and however seldom it is updated: {}",
            bytes::text(copies)
        );
        return Reply::none(Label::ChangesTraining, why);
    }
    if copies == 0 && adds && !moves && !question.is_without() {
        let weights = question.of(Category::Weights);
        let why =
            format!("there is none now; a copy of the weights takes {}", question.share(weights));
        return match question.is_worth(weights) {
            true => Reply::worse(Label::ChangesTraining, why),
            false => Reply::none(Label::ChangesTraining, why),
        };
    }
    let why = match copies {
        0 => "no extra copy of the model is alive at the peak".to_owned(),
        _ => format!("extra copies of the model take {}", question.share(copies)),
    };
    let reply = question.at_most(copies, label, why);
    match copies != 0 && moves {
        true => reply.tried_by(Try::Lever("ema-cpu")),
        false => reply,
    }
}

/// One matrix for the embedding and for the layer before the loss.
pub(super) fn tied(question: &Question<'_>) -> Reply {
    const STATE: [Category; 3] = [Category::Weights, Category::Gradients, Category::Optimizer];
    let label = Label::ChangesFunction;
    let Some(size) = vocabulary_of(question) else {
        return Reply::unknown(
            "no embedding was seen: `fathom run` with the change made measures it",
        );
    };
    let tensors = || question.anatomy().allocated_peak.tensors.iter();
    let matrices =
        tensors().filter(|it| it.category == Category::Weights && it.shape.contains(&size)).count();
    let held = question.bytes(|it| STATE.contains(&it.category) && it.shape.contains(&size));
    let why = format!(
        "matrices of {size} rows, with their gradients and optimizer state, take {}",
        question.share(held)
    );
    match (matrices, question.is_without()) {
        (0 | 1, false) => Reply::none(label, format!("there is one such matrix already: {why}")),
        (0 | 1, true) if question.is_worth(held) => Reply::worse(label, why),
        (_, true) => Reply::none(label, format!("it is not tied now: {why}")),
        (_, false) => question.at_most(held - held / matrices as u64, label, why),
    }
}
