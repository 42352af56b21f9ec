//! Numbers of fewer bits, and of more.

use anatomy::{Tensor, bytes};
use recording::Category;

use super::{Effect, Question, Reply, Try};
use crate::label::Label;
use crate::remedies::row;
use crate::scene::sum;

fn is_full(tensor: &Tensor) -> bool {
    // A temporary whose kind nobody noted may be one.
    matches!(tensor.dtype.as_str(), "float32" | "float64" | "")
}

fn is_half(tensor: &Tensor) -> bool {
    matches!(tensor.dtype.as_str(), "bfloat16" | "float16")
}

fn is_of_pass(tensor: &Tensor) -> bool {
    matches!(tensor.category, Category::Activations | Category::Temporaries | Category::Unknown)
}

/// Whether autocast is on; by the dtype that it computes in.
fn autocast_on<'a>(question: &Question<'a>) -> Option<&'a str> {
    question.anatomy().facts.of("autocast").first().map(String::as_str)
}

fn are_weights_half(question: &Question<'_>) -> bool {
    let half = question.bytes(|tensor| tensor.category == Category::Weights && is_half(tensor));
    question.of(Category::Weights) / 2 < half
}

pub(super) fn autocast(question: &Question<'_>) -> Reply {
    let half = question.words.has("fp16") || question.words.has("float16");
    let lever = if half { "amp-fp16" } else { "amp-bf16" };
    let label = question.label(const { row("amp-bf16") });
    if question.is_without() {
        return off(question, label);
    }
    if let Some(dtype) = autocast_on(question) {
        let why = format!("autocast is on already, with {dtype}");
        return Reply::none(label, why);
    }
    if are_weights_half(question) {
        let why =
            "the weights have two bytes a number already, so the model computes in half precision";
        return Reply::none(label, why);
    }
    let most = question.bytes(|tensor| is_of_pass(tensor) && is_full(tensor)) / 2;
    let casts = question.anatomy().parameters.map_or(0, |counts| counts.total.saturating_mul(2));
    let why = format!(
        "autocast halves at most what float32 activations and temporaries take, less where layers stay in float32, and \
         adds casts of the weights, up to {}: it helps where activations are the larger part",
        bytes::text(casts)
    );
    let reply = question.at_most(most, label, why);
    if reply.effect == Effect::None { reply } else { reply.tried_by(Try::Lever(lever)) }
}

/// Without the autocast that is on, or is not.
fn off(question: &Question<'_>, label: Label) -> Reply {
    let Some(dtype) = autocast_on(question) else {
        return match are_weights_half(question) {
            true => more_bits(question),
            false => {
                Reply::none(label, "autocast is not on: nothing computes in half precision now")
            }
        };
    };
    let half = question.bytes(|tensor| is_of_pass(tensor) && is_half(tensor));
    let casts = question.of(Category::Casts);
    let why = format!(
        "autocast is on, with {dtype}: activations and temporaries of two bytes take {} and would take twice that; its \
         casts of weights, {}, would go",
        bytes::text(half),
        bytes::text(casts)
    );
    match casts.saturating_mul(2) < half && question.is_worth(half) {
        true => Reply::worse(label, why),
        false => Reply::new(
            Effect::Unknown,
            Some(label),
            format!("{why}; which is more, a run without it tells"),
        ),
    }
}

/// `float32`: of what is half now.
pub(super) fn full(question: &Question<'_>) -> Reply {
    let label = Label::ChangesNumerics;
    let is_double = ["float64", "fp64", "double precision"].iter().any(|it| question.words.has(it));
    let is_on = autocast_on(question).is_some() || are_weights_half(question);
    if question.is_without() {
        return Reply::unknown(
            "in which other precision is not said: ask `bf16`, or `weights in bf16`, and it is tried",
        );
    }
    match (is_double, is_on) {
        (true, _) => Reply::worse(label, "numbers of eight bytes take twice what those of four do"),
        (false, false) => {
            Reply::none(label, "nothing computes in half precision now: it is float32")
        }
        (false, true) => off(question, label),
    }
}

fn more_bits(question: &Question<'_>) -> Reply {
    let half = question.bytes(is_half);
    let why = format!("numbers of two bytes take {} and would take twice that", bytes::text(half));
    Reply::worse(Label::ChangesNumerics, why)
}

/// The model itself in half precision: weights, gradients and state with it.
pub(super) fn half_weights(question: &Question<'_>) -> Reply {
    let label = question.label(const { row("half-weights") });
    if question.is_without() {
        return match are_weights_half(question) {
            true => more_bits(question),
            false => Reply::none(label, "the weights are not in half precision now"),
        };
    }
    if are_weights_half(question) {
        return Reply::none(label, "the weights have two bytes a number already");
    }
    let most = question.bytes(is_full) / 2;
    let why = format!(
        "everything of four bytes a number could have two: weights, gradients, optimizer state and activations in float32 \
         are {}. Adam's state then rounds small updates away",
        bytes::text(sum([most, most].into_iter()))
    );
    question.at_most(most, label, why)
}

pub(super) fn float8(question: &Question<'_>) -> Reply {
    let most = question.bytes(|tensor| is_of_pass(tensor) && is_full(tensor)) / 4 * 3;
    let half = question.bytes(|tensor| is_of_pass(tensor) && is_half(tensor)) / 2;
    let why = format!(
        "inputs of matrix products could have one byte a number; norms, functions and the model's state stay as they are. \
         Activations are {}; what it brings, `fathom run` measures with the change made",
        question.share(question.of(Category::Activations))
    );
    question.at_most(most.saturating_add(half), Label::ChangesNumerics, why)
}
