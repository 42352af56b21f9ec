//! Extra copies of the model.

use anatomy::bytes;
use recording::Category;

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
