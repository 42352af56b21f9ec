//! Training fewer parameters, and holding weights that are not trained in few bits.

use anatomy::{Tensor, bytes};
use recording::Category;

use super::question::is_inside;
use super::{Effect, Question, Reply, Try, optimizer};
use crate::label::Label;
use crate::remedies::row;
use crate::scene::sum;

/// What is gone where nothing but a few parameters is trained.
fn of_trained(question: &Question<'_>) -> u64 {
    question
        .of_training()
        .saturating_add(question.of(Category::Activations))
        .saturating_add(question.of(Category::Temporaries))
}

/// Is less than a tenth of the parameters trained?
fn is_mostly_frozen(question: &Question<'_>) -> bool {
    question.anatomy().parameters.is_some_and(|counts| counts.trainable < counts.total / 10)
}

fn parts(question: &Question<'_>) -> String {
    format!(
        "gradients {}, optimizer state {}, activations {}",
        bytes::text(question.of(Category::Gradients)),
        bytes::text(question.of(Category::Optimizer)),
        bytes::text(question.of(Category::Activations))
    )
}

pub(super) fn lora(question: &Question<'_>) -> Reply {
    let label = Label::ChangesTraining;
    let most = of_trained(question);
    if question.is_without() {
        return without_adapters(question);
    }
    if is_mostly_frozen(question) {
        let why = format!("most parameters are frozen already: {}", parts(question));
        return Reply::none(label, why);
    }
    let why = format!(
        "only small adapters are trained: the gradients and optimizer state of the other weights go ({}), of the \
         activations only a part, and the weights, {}, stay. `fathom run` measures it with the adapters in the script",
        parts(question),
        bytes::text(question.of(Category::Weights))
    );
    question.at_most(most, label, why)
}

fn without_adapters(question: &Question<'_>) -> Reply {
    let frozen = question.anatomy().parameters.map_or(0, |counts| counts.frozen);
    let more = frozen.saturating_mul(12);
    match is_mostly_frozen(question) && question.is_worth(more) {
        true => {
            let why = format!(
                "{frozen} parameters are frozen now; trained with Adam in float32 their gradients and state would take {}",
                bytes::text(more)
            );
            Reply::worse(Label::ChangesTraining, why)
        }
        false => Reply::none(
            Label::ChangesTraining,
            "the model is not mostly frozen: no adapters are in the way",
        ),
    }
}

pub(super) fn qlora(question: &Question<'_>) -> Reply {
    let weights = of_few_bits(question, 4);
    let frozen = is_mostly_frozen(question);
    let most = weights.saturating_add(if frozen { 0 } else { of_trained(question) });
    let trained = if frozen {
        "most parameters are frozen already".to_owned()
    } else {
        format!(
            "gradients and optimizer state of the weights go, and a part of the activations ({})",
            parts(question)
        )
    };
    let why = format!(
        "weights of four bits instead of {} take {} less at most; {trained}. `fathom run` measures it with the change made",
        bytes::text(question.of(Category::Weights)),
        bytes::text(weights)
    );
    question.at_most(most, Label::ChangesTraining, why)
}

/// What weights would take less with so many bits a number.
fn of_few_bits(question: &Question<'_>, bits: u64) -> u64 {
    let now = |tensor: &Tensor| match tensor.dtype.as_str() {
        "float32" => 32,
        "bfloat16" | "float16" => 16,
        "float64" => 64,
        _ => 8,
    };
    let weights = question
        .anatomy()
        .allocated_peak
        .tensors
        .iter()
        .filter(|it| it.category == Category::Weights);
    sum(weights.map(|tensor| tensor.block - tensor.block / now(tensor) * bits.min(now(tensor))))
}

pub(super) fn quantise(question: &Question<'_>) -> Reply {
    // `quantize the optimizer's state to 8 bits`: what has fewer bits may stand anywhere in the question.
    if ["optim*", "adam* state*", "moments"].iter().any(|it| question.words.has(it)) {
        return optimizer::eight_bits(question);
    }
    let is_four = ["4bit", "4 bit", "nf4", "int4", "load in 4bit", "gptq", "awq"]
        .iter()
        .any(|it| question.words.has(it));
    let bits = if is_four { 4 } else { 8 };
    if question.is_without() {
        return Reply::unknown(
            "what weights would take without it, `fathom run` measures with the change made",
        );
    }
    let most = of_few_bits(question, bits);
    let training = match question.of_training() {
        0 => "",
        _ => {
            ". Weights of few bits cannot be trained themselves: only adapters beside them (QLoRA)"
        }
    };
    let why = format!(
        "with {bits} bits a number the weights, {}, take {} less at most; nothing else changes{training}",
        question.share(question.of(Category::Weights)),
        bytes::text(most)
    );
    question.at_most(most, question.label(const { row("quantise") }), why)
}

pub(super) fn freezing(question: &Question<'_>) -> Reply {
    let label = question.label(const { row("freeze") });
    if question.is_without() {
        return unfreeze(question);
    }
    let modules = match question.modules() {
        Ok(modules) => modules,
        Err(name) => return question.no_module(&name, label),
    };
    let kinds =
        [Category::Gradients, Category::Optimizer, Category::Activations, Category::Temporaries];
    if modules.is_empty() {
        let most = sum(kinds.into_iter().map(|kind| question.of(kind)));
        let why = format!(
            "what is frozen has no gradient and no optimizer state, and keeps nothing if nothing before it is trained; all \
             of these are {}. Weights stay. Name a module (`freeze encoder`) and it is tried",
            bytes::text(most)
        );
        return question.at_most(most, label, why);
    }
    let whole = question.inside(&modules, |tensor| kinds.contains(&tensor.category));
    // The optimizer's step and gradients in flight may belong to no module.
    let open = question
        .bytes(|tensor| tensor.origin.module.is_empty() && kinds.contains(&tensor.category));
    // Layers before it, whose activations go if nothing else needs them, are not counted on.
    let why = format!(
        "gradients, optimizer state and activations of {} take {} at the peak; its weights stay",
        modules.join(", "),
        bytes::text(whole)
    );
    let reply = question.at_most(whole.saturating_add(open), label, why);
    match question.is_partial() {
        true => reply,
        false => reply.tried_by(Try::Freeze(modules)),
    }
}

pub(super) fn unfreeze(question: &Question<'_>) -> Reply {
    let frozen = question.anatomy().parameters.map_or(0, |counts| counts.frozen);
    let modules = question.modules().unwrap_or_default();
    let names_trained = !modules.is_empty()
        && !question
            .anatomy()
            .facts
            .of("frozen")
            .iter()
            .any(|path| modules.iter().any(|it| is_inside(path, it) || is_inside(it, path)));
    if frozen == 0 || names_trained {
        return Reply::none(Label::ChangesTraining, "it is not frozen: it is trained now");
    }
    let why = format!(
        "{frozen} parameters are frozen; each that is trained gets a gradient and optimizer state, and its layer keeps its \
         input"
    );
    match question.is_worth(frozen.saturating_mul(4)) {
        true => Reply::worse(Label::ChangesTraining, why),
        false => Reply::new(
            Effect::Unknown,
            Some(Label::ChangesTraining),
            format!("{why}; `fathom run` measures it"),
        ),
    }
}

pub(super) fn offload(question: &Question<'_>) -> Reply {
    let weights = question.of(Category::Weights).saturating_add(question.of(Category::Buffers));
    let why = format!(
        "weights that wait on the host are {}, less what runs at the moment",
        question.share(weights)
    );
    question.at_most(weights, question.label(const { row("model-offload") }), why)
}
