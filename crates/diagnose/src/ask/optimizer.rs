//! The optimizer: its state, and what its step makes.

use anatomy::bytes;
use recording::Category;

use super::{Effect, Question, Reply, Try};
use crate::finding::Finding;
use crate::label::Label;
use crate::remedies::{Row, row};

fn state(question: &Question<'_>) -> (u64, String) {
    let state = question.of(Category::Optimizer);
    let name = question.anatomy().facts.of("optimizer").first();
    let name = name.and_then(|fact| fact.split(' ').next()).unwrap_or("the optimizer");
    (state, format!("the state of {name} takes {}", question.share(state)))
}

/// Does the optimizer have a name like this?
fn is_now(question: &Question<'_>, name: &str) -> bool {
    let facts = question.anatomy().facts.of("optimizer");
    facts
        .iter()
        .any(|fact| fact.split(' ').next().is_some_and(|own| own.to_lowercase().starts_with(name)))
}

/// So much of the state may go; a lever measures it.
fn less_state(question: &Question<'_>, most: u64, of: &Row) -> Reply {
    let (_, why) = state(question);
    let reply = question.at_most(most, question.label(of), why);
    if reply.effect == Effect::None { reply } else { reply.tried_by(Try::Lever(find_id(of))) }
}

fn find_id(of: &Row) -> &'static str {
    crate::remedies::find(of.id).map_or("", |row| row.id)
}

pub(super) fn eight_bits(question: &Question<'_>) -> Reply {
    let is_four = question.words.has("4bit*")
        || question.words.has("4 bit*")
        || question.words.has("adamw4bit");
    let (held, why) = state(question);
    if is_four {
        return question.at_most(held / 8 * 7, Label::ChangesTraining, why);
    }
    less_state(question, held / 4 * 3, const { row("8bit-optimizer") })
}

pub(super) fn small_state(question: &Question<'_>) -> Reply {
    let held = state(question).0;
    let is_adafactor = question.words.has("adafactor");
    match is_adafactor {
        true => less_state(question, held, const { row("adafactor") }),
        false => question.at_most(held, Label::ChangesTraining, state(question).1),
    }
}

pub(super) fn sgd(question: &Question<'_>) -> Reply {
    let held = state(question).0;
    if held == 0 && is_now(question, "sgd") {
        return Reply::none(Label::ChangesTraining, "it is SGD without state already");
    }
    // The lever keeps one moment; plain SGD keeps none.
    let with_momentum =
        !question.words.has("without momentum") && !question.words.has("no momentum");
    let reply = less_state(question, held, const { row("sgd") });
    match with_momentum {
        true => Reply {
            why: format!(
                "{}; the trial is SGD with momentum, without it there is no state",
                reply.why
            ),
            ..reply
        },
        false => Reply { tries: Vec::new(), ..reply },
    }
}

/// Optimizers that keep one number a parameter.
pub(super) fn one_moment(question: &Question<'_>) -> Reply {
    let (held, why) = state(question);
    let one = question.all_gradients();
    let why = format!("{why}; one number a trained parameter takes {}", bytes::text(one));
    if question.is_without() {
        return question.at_most(held, Label::ChangesTraining, why);
    }
    // Who names the optimizer that is there may ask about something else.
    let names = ["lion", "muon", "rmsprop", "adagrad"];
    if names.iter().any(|name| question.words.has(name) && is_now(question, name)) {
        return Reply::none(Label::ChangesTraining, format!("it is that optimizer already; {why}"));
    }
    match held <= one.saturating_add(one / 50) {
        true if held == 0 && question.is_worth(one) => Reply::worse(Label::ChangesTraining, why),
        true => {
            Reply::none(Label::ChangesTraining, format!("{why}: it has no more than that already"))
        }
        false => question.at_most(held.saturating_sub(one), Label::ChangesTraining, why),
    }
}

pub(super) fn adam(question: &Question<'_>) -> Reply {
    let (held, why) = state(question);
    let two = question.all_gradients().saturating_mul(2);
    let why = format!(
        "{why}; Adam keeps two numbers a trained parameter, {} in float32",
        bytes::text(two)
    );
    if question.is_without() {
        return question.at_most(held, Label::ChangesTraining, why);
    }
    if is_now(question, "adam") {
        return Reply::none(Label::ChangesTraining, format!("it is Adam already; {why}"));
    }
    match held < two && question.is_worth(two - held) {
        true => Reply::worse(Label::ChangesTraining, why),
        false => Reply::none(Label::ChangesTraining, why),
    }
}

/// Each weight is changed as soon as its gradient is there, which is given back at once.
pub(super) fn in_backward(question: &Question<'_>) -> Reply {
    let lists = question.finding("optimizer-temporaries").map_or(0, |finding| finding.bytes);
    let gradients = question.of(Category::Gradients);
    // LOMO has no state besides.
    let (held, why) = state(question);
    let state = if question.words.has("lomo") { held } else { 0 };
    let why = format!(
        "gradients take {} at the peak, and all but a few would be gone by then; {why}{}. Gradients cannot be accumulated or \
         clipped together then",
        bytes::text(gradients),
        if state == 0 { " and stays" } else { "" },
    );
    let most = gradients.saturating_add(lists).saturating_add(state);
    question.at_most(most, Label::ChangesTraining, why)
}

/// One whose state is not known here.
pub(super) fn other(question: &Question<'_>) -> Reply {
    let why =
        format!("{}; what another one keeps, `fathom run` measures with it", state(question).1);
    Reply::new(Effect::Unknown, Some(Label::ChangesTraining), why)
}

pub(super) fn offload(question: &Question<'_>) -> Reply {
    let (held, why) = state(question);
    let temporaries = question.finding("optimizer-temporaries").map_or(0, |finding| finding.bytes);
    let why = format!(
        "{why}; on the host it waits for the bus in each step (DeepSpeed's offload_optimizer, torchao's \
         CPUOffloadOptimizer). `fathom run` measures the change once it is made"
    );
    question.at_most(held.saturating_add(temporaries), Label::NumericallyEqual, why)
}

pub(super) fn fused(question: &Question<'_>) -> Reply {
    of_step(question, const { row("fused-optimizer") }, "fused=yes")
}

pub(super) fn foreach(question: &Question<'_>) -> Reply {
    let is_on = question.words.has("foreach true")
        || question.words.has("use foreach")
        || question.words.has("with foreach");
    let row = const { row("no-foreach") };
    if is_on && !question.is_without() {
        let why = "on a GPU that is what PyTorch does where nothing else is said; its lists of temporaries can only add \
                   to an optimizer's step";
        return Reply::none(question.label(row), why);
    }
    of_step(question, row, "foreach=no")
}

/// Changes of how the optimizer steps.
fn of_step(question: &Question<'_>, change: &Row, already: &str) -> Reply {
    let label = question.label(change);
    if question.anatomy().facts.of("optimizer").iter().any(|fact| fact.contains(already)) {
        return Reply::none(label, format!("it is so already; {}", question.moment()));
    }
    match question.finding("optimizer-temporaries") {
        Some(Finding { bytes, .. }) => {
            let why = format!(
                "temporaries of the optimizer's step take {} at the peak",
                bytes::text(*bytes)
            );
            question.at_most(*bytes, label, why).tried_by(Try::Lever(find_id(change)))
        }
        None => Reply::none(label, format!("{}, not in the optimizer's step", question.moment())),
    }
}
