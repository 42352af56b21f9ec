//! Sizes that a user turns: batch, tokens, resolution, vocabulary, depth, width.

use std::collections::BTreeMap;

use anatomy::{Tensor, bytes};
use recording::Category;

use super::question::is_inside;
use super::words::Said;
use super::{Effect, Question, Reply, Try};
use crate::label::Label;
use crate::remedies::row;
use crate::scene::sum;

/// A size of the script's: what it is now, and what follows it.
struct Size {
    noun: &'static str,
    /// What it is now and by what that is known, if it is.
    now: Option<(u64, String)>,
    /// The setting of the command that turns it.
    knob: Option<String>,
    /// Bytes of the peak that follow it; all else stays whatever it is.
    follows: u64,
    label: Label,
    /// What follows it, as a sentence's beginning.
    what: String,
}

/// What is to become of a size.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    More,
    Less,
    Same,
    /// It is named, and nothing more.
    Unsaid,
    /// A number, and nobody knows what it is now.
    Unclear(u64),
}

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

// -- what is said of a size, and what it is ---------------------------------------------------------

fn turn(question: &Question<'_>, size: Size, is_inverse: bool) -> Reply {
    let (target, was) = question.words.numbers(&question.span);
    let now = was.map(|was| (was, "as the question says".to_owned())).or(size.now);
    let said = match question.said() {
        Said::More => Turn::More,
        Said::Less | Said::Without => Turn::Less,
        Said::Plain => Turn::Unsaid,
    };
    // A number behind `by` is how much, not how many.
    let is_ratio =
        ["times", "by half", "in half", "percent"].iter().any(|it| question.words.has(it));
    let target = target.filter(|_| !is_ratio);
    let turn = match (target, &now) {
        (Some(target), Some((now, _))) if target == *now => Turn::Same,
        (Some(target), Some((now, _))) if *now < target => Turn::More,
        (Some(_), Some(_)) => Turn::Less,
        (Some(_), None) if said != Turn::Unsaid => said,
        (Some(target), None) => Turn::Unclear(target),
        (None, _) => said,
    };
    let it_is = now
        .as_ref()
        .map_or(String::new(), |(now, by)| format!("the {} is {now}, {by}; ", size.noun));
    let why = format!("{it_is}{}", size.what);
    let label = Some(size.label);
    let turn = match (turn, is_inverse) {
        (Turn::More, true) => Turn::Less,
        (Turn::Less, true) => Turn::More,
        (turn, _) => turn,
    };
    let reply = match turn {
        Turn::Same => Reply::new(Effect::None, label, format!("that is what it is: {why}")),
        Turn::More if question.is_worth(size.follows) => Reply::new(Effect::Worse, label, why),
        Turn::More => Reply::new(
            Effect::Unknown,
            label,
            format!("{why}; how much a larger one adds, a run tells"),
        ),
        Turn::Less => question.at_most(size.follows, size.label, why),
        Turn::Unsaid if is_inverse => Reply::new(Effect::Unknown, label, why),
        Turn::Unsaid => {
            question.at_most(size.follows, size.label, format!("with a smaller one: {why}"))
        }
        Turn::Unclear(target) => {
            let how = format!(
                "what the {} is now is not known, so neither is whether {target} is more: `fathom sweep --vary` tries \
                 values of a flag of the script",
                size.noun
            );
            Reply::new(Effect::Unknown, label, format!("{why}; {how}"))
        }
    };
    let value = match (target, said, &now) {
        (Some(target), ..) => Some(target),
        (None, Turn::Less, Some((now, _))) if 1 < *now => Some(now / 2),
        (None, Turn::More, Some((now, _))) => now.checked_mul(2),
        _ => None,
    };
    match (size.knob, value) {
        (Some(name), Some(value)) if turn != Turn::Same => {
            reply.tried_by(Try::Knob { name, value: value.to_string() })
        }
        _ => reply,
    }
}

/// What a setting of the command is, and its name there; the first of these names that it has.
fn of_command(question: &Question<'_>, names: &[&str]) -> (Option<(u64, String)>, Option<String>) {
    let plain = |word: &str| word.trim_start_matches('-').replace('_', "-").to_lowercase();
    let words = question.about.command;
    for name in names {
        for (at, word) in words.iter().enumerate().skip(1) {
            let (key, value) = match word.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None if word.starts_with("--") => {
                    (word.as_str(), words.get(at + 1).map(String::as_str))
                }
                None => continue,
            };
            let last = key.rsplit('.').next().unwrap_or(key);
            let Some(number) = value.and_then(|value| value.parse().ok()) else { continue };
            if plain(last) == *name {
                let shown = key.trim_start_matches('-');
                return (Some((number, format!("by `{key}`"))), Some(shown.to_owned()));
            }
        }
    }
    (None, None)
}

/// The first size of all inputs, if it is one.
fn first_size(question: &Question<'_>) -> Option<u64> {
    let of = |kind: Category| {
        let tensors = question.anatomy().allocated_peak.tensors.iter();
        tensors
            .filter(move |it| it.category == kind && !it.dtype.is_empty() && !it.shape.is_empty())
    };
    let mut firsts = of(Category::Inputs).map(|tensor| tensor.shape[0]);
    if let Some(first) = firsts.next() {
        return (firsts.all(|other| other == first) && 0 < first).then_some(first);
    }
    // Without inputs: what nearly all that is kept begins with.
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for tensor in of(Category::Activations) {
        let bytes = sums.entry(tensor.shape[0]).or_default();
        *bytes = bytes.saturating_add(tensor.block);
    }
    let whole = sum(sums.values().copied());
    let (first, bytes) = sums.into_iter().max_by_key(|row| row.1)?;
    (u128::from(whole) * 95 <= u128::from(bytes) * 100 && 0 < first).then_some(first)
}

/// The length that most vectors among the weights have, those of norms and biases.
fn width_of(question: &Question<'_>) -> Option<u64> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for tensor in question
        .anatomy()
        .allocated_peak
        .tensors
        .iter()
        .filter(|it| it.category == Category::Weights)
    {
        if let [length] = tensor.shape.as_slice() {
            *counts.entry(*length).or_default() += 1;
        }
    }
    let whole: u64 = counts.values().sum();
    let (length, count) = counts.into_iter().max_by_key(|row| row.1)?;
    (whole < count * 2).then_some(length)
}

/// The rows of the largest embedding; else the classes of the logits.
fn vocabulary_of(question: &Question<'_>) -> Option<u64> {
    let is_embedding = |path: &str| {
        question
            .anatomy()
            .modules
            .iter()
            .any(|(own, class)| own == path && class.contains("Embedding"))
    };
    let tensors = question.anatomy().allocated_peak.tensors.iter();
    let embeddings = tensors.filter(|it| it.category == Category::Weights && it.shape.len() == 2);
    let rows = embeddings.filter(|it| is_embedding(&it.origin.module)).map(|it| it.shape[0]);
    let logits = || {
        let evidence = question.finding("loss-logits")?.evidence.first()?;
        evidence.shape.iter().copied().skip(1).max()
    };
    rows.max().or_else(logits)
}

/// Blocks of one class in one list.
struct List {
    name: String,
    paths: Vec<String>,
}

/// The list of equal blocks that holds most.
fn largest_list(question: &Question<'_>) -> Option<List> {
    let mut lists: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (path, class) in &question.anatomy().modules {
        let (above, last) = path.rsplit_once('.').unwrap_or(("", path));
        if last.bytes().all(|byte| byte.is_ascii_digit()) && !last.is_empty() {
            lists.entry((above, class)).or_default().push(path.clone());
        }
    }
    let modules = &question.anatomy().allocated_peak.modules;
    let held = |paths: &[String]| {
        let of =
            modules.iter().filter(|module| paths.iter().any(|path| is_inside(&module.path, path)));
        sum(of.map(|module| module.own))
    };
    let equal = lists.into_iter().filter(|(_, paths)| 1 < paths.len());
    let ((above, class), paths) = equal.max_by_key(|(_, paths)| held(paths))?;
    let name = match above {
        "" => class.to_owned(),
        above => format!("{above}.*"),
    };
    Some(List { name, paths })
}
