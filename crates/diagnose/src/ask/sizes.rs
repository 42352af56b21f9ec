//! Sizes that a user turns: batch, tokens, resolution, vocabulary, depth, width.

use anatomy::{Tensor, bytes};
use recording::{Category, Phase};

use super::seen::{first_size, largest_list, vocabulary_of, width_of};
use super::turn::{Size, of_command, turn};
use super::words::Said;
use super::{Effect, Question, Reply};
use crate::label::Label;
use crate::remedies::row;
use crate::scene::sum;

pub(super) fn batch(question: &Question<'_>) -> Reply {
    const FLAGS: &[&str] = &[
        "batch-size",
        "batch",
        "batchsize",
        "bs",
        "per-device-train-batch-size",
        "train-batch-size",
        "micro-batch-size",
        "per-gpu-batch-size",
        "device-batch-size",
        "batch-size-per-gpu",
    ];
    let data = question.of_data();
    let rest = question.allocated().saturating_sub(data);
    let (setting, knob) = of_command(question, FLAGS);
    let seen = || first_size(question).map(|size| (size, "by the shapes of its inputs".to_owned()));
    let what = format!(
        "activations, temporaries, inputs and workspaces follow the batch: {}. The other {} stay whatever it is",
        bytes::text(data),
        bytes::text(rest)
    );
    let label = question.label(const { row("batch") });
    let size = Size { noun: "batch", now: setting.or_else(seen), knob, follows: data, label, what };
    turn(question, size, false)
}

/// An evaluation is another moment than a training step.
pub(super) fn evaluation_batch(question: &Question<'_>) -> Reply {
    let label = Label::Exact;
    let is_there = question.anatomy().allocated_peak.when.phase == Some(Phase::Evaluation);
    let has_number = question.words.numbers(&question.span).0.is_some();
    match (is_there, question.said()) {
        (true, _) => Reply::new(
            Effect::Unknown,
            Some(label),
            format!(
                "{}; {} follow its batch: `fathom run` with another one tells",
                question.moment(),
                bytes::text(question.of_data())
            ),
        ),
        (false, Said::Less | Said::Without) => {
            Reply::none(label, format!("{}, not in an evaluation", question.moment()))
        }
        (false, Said::Plain) if !has_number => {
            Reply::none(label, format!("{}, not in an evaluation", question.moment()))
        }
        _ => Reply::new(
            Effect::Unknown,
            Some(label),
            format!(
                "{}, not in an evaluation; what a larger batch makes of that, `fathom run` tells",
                question.moment()
            ),
        ),
    }
}

pub(super) fn tokens(question: &Question<'_>) -> Reply {
    const FLAGS: &[&str] = &[
        "seq-len",
        "seqlen",
        "seq-length",
        "sequence-length",
        "block-size",
        "max-length",
        "max-len",
        "context-length",
        "context",
        "ctx",
        "max-seq-len",
        "max-seq-length",
        "tokens",
        "seq",
        "length",
        "n-ctx",
        "max-new-tokens",
    ];
    let (setting, knob) = of_command(question, FLAGS);
    let seen = || {
        let ids = question.anatomy().allocated_peak.tensors.iter().filter(|tensor| {
            tensor.category == Category::Inputs && tensor.dtype.starts_with("int")
        });
        let mut lengths = ids.filter_map(|tensor| match tensor.shape.as_slice() {
            [_, length] => Some(*length),
            _ => None,
        });
        let first = lengths.next()?;
        lengths
            .all(|other| other == first)
            .then(|| (first, "by the shapes of its inputs".to_owned()))
    };
    let data = question.of_data();
    let squares = match question.finding("attention-matrices") {
        Some(finding) => format!("; of it {} grow with its square", bytes::text(finding.bytes)),
        None => String::new(),
    };
    let what = format!(
        "activations, temporaries and inputs follow the number of tokens: {}{squares}. The model's state stays",
        bytes::text(data)
    );
    let label = question.label(const { row("inputs") });
    let now = setting.or_else(seen);
    turn(question, Size { noun: "number of tokens", now, knob, follows: data, label, what }, false)
}

pub(super) fn inputs(question: &Question<'_>) -> Reply {
    const FLAGS: &[&str] = &[
        "image-size",
        "img-size",
        "resolution",
        "res",
        "size",
        "imgsz",
        "crop-size",
        "input-size",
        "frames",
        "num-frames",
        "points",
        "num-points",
        "n-points",
        "groups",
        "num-group",
        "num-groups",
        "width-px",
    ];
    let (setting, knob) = of_command(question, FLAGS);
    let is_of_images = ["resolution*", "image*", "img size", "crop*", "input size", "pixels"]
        .iter()
        .any(|phrase| question.words.has(phrase));
    let seen = || {
        let all = question.anatomy().allocated_peak.tensors.iter();
        let mut images =
            all.filter(|tensor| tensor.category == Category::Inputs).filter_map(|tensor| {
                match tensor.shape.as_slice() {
                    [_, _, high, wide] if high == wide => Some(*wide),
                    _ => None,
                }
            });
        let first = images.next().filter(|_| is_of_images)?;
        images
            .all(|other| other == first)
            .then(|| (first, "by the shapes of its inputs".to_owned()))
    };
    let data = question.of_data();
    let what = format!(
        "activations, temporaries and inputs follow the size of an input: {}. The model's state stays",
        bytes::text(data)
    );
    let label = question.label(const { row("inputs") });
    let now = setting.or_else(seen);
    turn(question, Size { noun: "size of an input", now, knob, follows: data, label, what }, false)
}

/// Larger patches are fewer tokens.
pub(super) fn patch(question: &Question<'_>) -> Reply {
    const FLAGS: &[&str] = &["patch-size", "patch", "stride"];
    let (now, knob) = of_command(question, FLAGS);
    let data = question.of_data();
    let what = format!(
        "larger patches are fewer tokens, smaller ones more: activations and temporaries follow, {}",
        bytes::text(data)
    );
    let label = Label::ChangesFunction;
    turn(question, Size { noun: "patch size", now, knob, follows: data, label, what }, true)
}

pub(super) fn vocabulary(question: &Question<'_>) -> Reply {
    const FLAGS: &[&str] =
        &["vocab-size", "vocab", "vocabulary", "num-classes", "classes", "n-vocab"];
    let (setting, knob) = of_command(question, FLAGS);
    let seen = vocabulary_of(question);
    let Some(size) = seen.or(setting.as_ref().map(|row| row.0)) else {
        let why = "no embedding and no logits show how large the vocabulary is: `fathom run` with the change made \
                   measures it";
        return Reply::unknown(why);
    };
    let has_it = |tensor: &Tensor| tensor.shape.contains(&size) && !tensor.dtype.is_empty();
    let open =
        |tensor: &Tensor| tensor.dtype.is_empty() && tensor.category == Category::Temporaries;
    let follows = question.bytes(|tensor| has_it(tensor) || open(tensor));
    let of_logits = question.finding("loss-logits").map_or(0, |finding| finding.bytes);
    let what = format!(
        "tensors with {size} rows or columns, the embedding, the head, their gradients and optimizer state, and logits, \
         take {} ({} of it are logits); no more follows the vocabulary",
        bytes::text(follows),
        bytes::text(of_logits)
    );
    let now = setting.or(Some((size, "by the shape of the embedding or the logits".to_owned())));
    let label = Label::ChangesFunction;
    turn(question, Size { noun: "vocabulary", now, knob, follows, label, what }, false)
}

pub(super) fn layers(question: &Question<'_>) -> Reply {
    const FLAGS: &[&str] = &[
        "layers",
        "num-layers",
        "n-layers",
        "n-layer",
        "depth",
        "blocks",
        "num-blocks",
        "num-hidden-layers",
    ];
    let (setting, knob) = of_command(question, FLAGS);
    let Some(list) = largest_list(question) else {
        let why = "no list of equal blocks was seen in the model: `fathom run` with the change made measures it";
        return Reply::unknown(why);
    };
    let own = question.inside(&list.paths, |_| true);
    // What no module owns may be of a block too: lists of the optimizer's step.
    let open = question.bytes(|tensor| {
        tensor.origin.module.is_empty() && tensor.category == Category::Temporaries
    });
    let follows = sum([own, open].into_iter());
    let count = list.paths.len() as u64;
    let what = format!(
        "{count} blocks `{}` hold {}, {} each on average",
        list.name,
        question.share(own),
        bytes::text(own / count.max(1))
    );
    // `what about the last layer` asks for no other number of them.
    if question.said() == Said::Plain && question.words.numbers(&question.span).0.is_none() {
        let why = format!("{what}; what is to become of them, the question leaves open");
        return Reply::unknown(format!("{why}: `fathom run` with the change made measures it"));
    }
    let now = setting.or(Some((count, "by the model's modules".to_owned())));
    let label = Label::ChangesFunction;
    turn(question, Size { noun: "number of blocks", now, knob, follows, label, what }, false)
}

pub(super) fn width(question: &Question<'_>) -> Reply {
    const FLAGS: &[&str] = &[
        "hidden",
        "hidden-size",
        "hidden-dim",
        "width",
        "d-model",
        "dim",
        "n-embd",
        "embed-dim",
        "channels",
        "base-channels",
        "model-dim",
    ];
    let (setting, knob) = of_command(question, FLAGS);
    let now = setting.or_else(|| Some((width_of(question)?, "by most of its vectors".to_owned())));
    let inputs = question.of(Category::Inputs);
    let follows = question.allocated().saturating_sub(inputs);
    let what = format!(
        "weights grow with the square of the width, activations with the width: all but the inputs follow it, {}",
        bytes::text(follows)
    );
    let label = Label::ChangesFunction;
    turn(question, Size { noun: "width", now, knob, follows, label, what }, false)
}
