//! PyTorch's allocator, its cache, and work areas of libraries.

use anatomy::bytes;
use recording::Category;

use super::{Effect, Question, Reply, Try};
use crate::finding::Whole;
use crate::label::Label;
use crate::remedies::row;

/// What is reserved beyond the allocated peak, in words.
fn beyond(question: &Question<'_>) -> String {
    let gap = question.about.findings.iter().find(|finding| finding.of == Whole::Reserved);
    let more = gap.map_or("nothing worth naming".to_owned(), |gap| bytes::text(gap.bytes));
    format!(
        "The allocated peak stays {}; {more} is reserved beyond it",
        bytes::text(question.allocated())
    )
}

pub(super) fn cache(question: &Question<'_>) -> Reply {
    let why = format!(
        "it gives back memory that no tensor uses, and PyTorch does that by itself before it runs out. {}",
        beyond(question)
    );
    Reply::none(Label::Exact, why)
}

/// `gc.collect()` frees what only cycles hold.
pub(super) fn garbage(question: &Question<'_>) -> Reply {
    match question.finding("growth").or(question.finding("kept-results")) {
        Some(finding) => {
            let why = format!(
                "{} ({}): if only a cycle of references holds it, it would be freed; which it is, does not follow from the \
                 recording. `fathom run` measures it with the call in the script",
                finding.title,
                bytes::text(finding.bytes)
            );
            Reply::new(Effect::Unknown, Some(Label::Exact), why)
        }
        None => {
            let why = format!(
                "nothing is held at the peak that garbage collection would free. {}",
                beyond(question)
            );
            Reply::none(Label::Exact, why)
        }
    }
}

/// `del outputs`, `loss.detach()`, `loss.item()`, `retain_graph`.
pub(super) fn delete(question: &Question<'_>) -> Reply {
    let held = ["growth", "retained-graph", "kept-results"]
        .into_iter()
        .find_map(|id| question.finding(id));
    if question.words.has("retain graph") && question.finding("retained-graph").is_none() {
        let why = "no graph that a finished backward pass has left is alive at the peak";
        return match question.anatomy().facts.of("retained").is_empty() && !question.is_without() {
            true => Reply::new(
                Effect::Unknown,
                Some(Label::Exact),
                format!(
                    "{why} now; a graph that is kept may lie under the next step: `fathom run` measures it"
                ),
            ),
            false => Reply::none(Label::Exact, why),
        };
    }
    match held {
        None if question.words.has("detach*") => {
            let why = "a part whose graph is cut off keeps nothing and is not trained: how much that is, `fathom run` measures";
            Reply::unknown(why)
        }
        Some(finding) => {
            let why = format!(
                "{}: {}. {}",
                finding.title,
                bytes::text(finding.bytes),
                finding.explanation
            );
            question.at_most(finding.bytes, Label::Exact, why)
        }
        None => {
            let why = "at the peak nothing is alive that only a name of the script's holds: what is there, the backward \
                       pass, the model or the running function needs";
            Reply::none(Label::Exact, why)
        }
    }
}

/// Settings of the allocator: they change what is reserved, never what is allocated.
pub(super) fn settings(question: &Question<'_>) -> Reply {
    let why = format!(
        "it changes where blocks lie, not how many there are; `fathom replay` tries more. {}",
        beyond(question)
    );
    let reply = Reply::none(question.label(const { row("allocator") }), why);
    match setting(question) {
        Some(setting) => reply.tried_by(Try::Allocator(setting)),
        None => reply,
    }
}

/// The setting as PyTorch writes it.
fn setting(question: &Question<'_>) -> Option<String> {
    const KNOWN: [&str; 4] = [
        "expandable_segments",
        "max_split_size_mb",
        "garbage_collection_threshold",
        "roundup_power2_divisions",
    ];
    let given = question.words.wholes().find_map(|(text, _)| {
        let text = text.rsplit('=').next().unwrap_or(text);
        let (name, value) = text.split_once(':')?;
        let is_plain =
            !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
        (KNOWN.contains(&name) && is_plain).then(|| text.to_owned())
    });
    let expands = question.words.has("expandable segment*") && !question.is_without();
    given.or_else(|| expands.then(|| "expandable_segments:True".to_owned()))
}

pub(super) fn channels_last(question: &Question<'_>) -> Reply {
    let label = question.label(const { row("channels-last") });
    let space = question.of(Category::Workspace);
    let maps = question.anatomy().modules.iter().any(|(_, class)| class.contains("Conv"));
    if !maps {
        return Reply::none(
            label,
            "the model has no convolutions, which alone would choose other kernels",
        );
    }
    let why = format!(
        "numbers are as many in any order: only scratch memory of convolutions changes, {}, and copies where a layer \
         wants the other order",
        question.share(space)
    );
    let effect = if space == 0 { Effect::None } else { Effect::AtMost(space) };
    Reply::new(effect, Some(label), why).tried_by(Try::Lever("channels-last"))
}

pub(super) fn cudnn_benchmark(question: &Question<'_>) -> Reply {
    let label = question.label(const { row("cudnn-benchmark") });
    let space = question.of(Category::Workspace);
    let is_on = !question.anatomy().facts.of("cudnn_benchmark").is_empty();
    let wants_off = question.is_without();
    let why = format!(
        "it is {} now; scratch memory of libraries takes {} at the peak",
        if is_on { "on" } else { "off" },
        bytes::text(space)
    );
    match (is_on, wants_off) {
        (true, true) => question.at_most(space, label, why),
        (false, true) | (true, false) => Reply::none(label, why),
        (false, false) => {
            let why = format!(
                "{why}; on, it may choose kernels with more or less of it: `fathom run` measures it"
            );
            Reply::new(Effect::Unknown, Some(label), why)
        }
    }
}

pub(super) fn workspace(question: &Question<'_>) -> Reply {
    let space = question.of(Category::Workspace);
    let why = format!(
        "libraries' scratch memory takes {} at the peak; nothing else can change",
        bytes::text(space)
    );
    question.at_most(space, Label::NumericallyEqual, why)
}

/// `losses.append(loss)`
pub(super) fn kept_losses(question: &Question<'_>) -> Reply {
    let kept = question.of(Category::Activations);
    let why = format!(
        "a loss that is kept keeps its graph: after a backward pass that is little, before one it is all that the pass \
         saves, {} here. `loss.item()` keeps nothing; `fathom run --steps 8` shows whether memory grows",
        question.share(kept)
    );
    Reply::unknown(why)
}
