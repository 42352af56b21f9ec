//! A question beside the run that it is asked about.

use std::ops::Range;

use anatomy::{Anatomy, Tensor, bytes};
use recording::Category;

use super::words::{Said, Words};
use super::{About, Effect, Reply, Try};
use crate::finding::Finding;
use crate::label::Label;
use crate::remedies::Row;
use crate::scene::sum;

/// One thing that is asked about, and what is said of it.
pub(super) struct Question<'a> {
    pub(super) about: &'a About<'a>,
    pub(super) words: &'a Words,
    /// Where its name stands.
    pub(super) span: Range<usize>,
}

impl<'a> Question<'a> {
    pub(super) fn anatomy(&self) -> &'a Anatomy {
        self.about.anatomy
    }

    /// Bytes of blocks of a category at the allocated peak.
    pub(super) fn of(&self, category: Category) -> u64 {
        self.bytes(|tensor| tensor.category == category)
    }

    /// Bytes of blocks at the allocated peak.
    pub(super) fn bytes(&self, is_wanted: impl Fn(&Tensor) -> bool) -> u64 {
        let tensors = self.anatomy().allocated_peak.tensors.iter();
        sum(tensors.filter(|tensor| is_wanted(tensor)).map(|tensor| tensor.block))
    }

    pub(super) fn allocated(&self) -> u64 {
        self.anatomy().allocated_peak.allocated
    }

    pub(super) fn finding(&self, id: &str) -> Option<&'a Finding> {
        debug_assert!(crate::detectors::TABLE.iter().any(|row| row.id == id), "{id}");
        self.about.findings.iter().find(|finding| finding.id == id)
    }

    /// How far a change of the table goes with this model.
    pub(super) fn label(&self, of: &Row) -> Label {
        of.remedy(self.anatomy()).label
    }

    pub(super) fn said(&self) -> Said {
        self.words.said(&self.span)
    }

    pub(super) fn is_without(&self) -> bool {
        self.said() == Said::Without
    }

    /// Things made by the passes, which follow the data.
    pub(super) fn of_data(&self) -> u64 {
        let kinds = [
            Category::Activations,
            Category::Temporaries,
            Category::Inputs,
            Category::Workspace,
            Category::KvCache,
            Category::Unknown,
        ];
        sum(kinds.into_iter().map(|kind| self.of(kind)))
    }

    /// Gradients and the optimizer's state, which only what is trained has.
    pub(super) fn of_training(&self) -> u64 {
        self.of(Category::Gradients).saturating_add(self.of(Category::Optimizer))
    }

    /// What the gradients of all parameters take that are trained, in float32.
    pub(super) fn all_gradients(&self) -> u64 {
        self.anatomy().parameters.map_or(0, |counts| counts.trainable.saturating_mul(4))
    }

    /// Is it a hundredth of the peak or more?
    pub(super) fn is_worth(&self, bytes: u64) -> bool {
        u128::from(self.allocated()) <= u128::from(bytes) * 100 && bytes != 0
    }

    /// `1.20 GiB, 34 % of the peak`.
    pub(super) fn share(&self, part: u64) -> String {
        let whole = self.allocated().max(1);
        format!("{}, {:.0} % of the peak", bytes::text(part), 100.0 * part as f64 / whole as f64)
    }

    /// The peak in words.
    pub(super) fn moment(&self) -> String {
        let peak = &self.anatomy().allocated_peak;
        let phase = peak.when.phase.map_or("an unknown phase", |phase| phase.name());
        let module = peak.raised_by.as_ref().map_or("", |origin| origin.module.as_str());
        let of = if module.is_empty() { String::new() } else { format!(", {module}") };
        format!("the peak of {} is in {}{of}", bytes::text(peak.allocated), phase.replace('_', " "))
    }

    /// Modules of the model that the question names: by path, by its end, or by the name of one of its parts.
    pub(super) fn modules(&self) -> Result<Vec<String>, String> {
        // `everything but the head` names what is not meant.
        let except = ["but", "except", "besides", "everything", "only", "apart from", "other than"];
        if except.iter().any(|word| self.words.has(word)) {
            return Ok(Vec::new());
        }
        let known = || self.anatomy().modules.iter().map(|(path, _)| path.as_str());
        let mut found = Vec::new();
        for (text, is_of_topic) in self.words.wholes().filter(|(text, _)| !text.is_empty()) {
            let text = plain(text);
            let is_path = looks_like_path(text);
            // `freeze the embeddings` means the module `embedding`.
            let one = text.strip_suffix('s').unwrap_or(text);
            let is_called =
                |path: &str, name: &str| path == name || path.ends_with(&format!(".{name}"));
            let is_there = known().any(|path| is_called(path, text));
            let ends = |path: &str| is_called(path, if is_there { text } else { one });
            let is_plain = is_of_topic || COMMON.contains(&text.to_lowercase().as_str());
            if is_plain || text.len() < 2 {
                continue;
            }
            let mut paths: Vec<String> =
                known().filter(|path| ends(path)).map(str::to_owned).collect();
            // A list is never called itself: its blocks are what is meant.
            let blocks: Vec<String> =
                known().filter(|path| is_block_of(path, text)).map(str::to_owned).collect();
            if !blocks.is_empty() && paths.iter().all(|path| self.is_list(path)) {
                found.extend(blocks);
                continue;
            }
            if paths.is_empty() && is_path {
                return Err(text.to_owned());
            }
            // The outermost of those that have the name.
            paths.sort_by_key(|path| path.len());
            let outermost = paths.first().map(|path| path.split('.').count());
            paths.retain(|path| Some(path.split('.').count()) == outermost);
            found.extend(paths);
        }
        Ok(found)
    }

    fn is_list(&self, path: &str) -> bool {
        let class = self.anatomy().modules.iter().find(|(known, _)| known == path);
        class.is_some_and(|(_, class)| class.contains("List"))
    }

    /// Whether only some of what it names is meant: `the first 3 blocks`, `every other layer`.
    pub(super) fn is_partial(&self) -> bool {
        let words = [
            "first",
            "last",
            "half",
            "some",
            "every",
            "other",
            "except",
            "bottom",
            "top",
            "only",
            "but",
            "besides",
            "everything",
            "apart",
            "than",
        ];
        words.iter().any(|word| self.words.has(word)) || self.words.numbers(&self.span).0.is_some()
    }

    /// Bytes of modules and all below them.
    pub(super) fn inside(&self, modules: &[String], is_wanted: impl Fn(&Tensor) -> bool) -> u64 {
        self.bytes(|tensor| {
            is_wanted(tensor) && modules.iter().any(|path| is_inside(&tensor.origin.module, path))
        })
    }

    // -- replies ------------------------------------------------------------------------------------

    /// It could bring back so much, or nothing that is worth a word.
    pub(super) fn at_most(&self, bytes: u64, label: Label, why: String) -> Reply {
        let effect = match self.is_worth(bytes) {
            true => Effect::AtMost(bytes.min(self.allocated())),
            false => Effect::None,
        };
        Reply { effect, label: Some(label), why, tries: Vec::new() }
    }

    pub(super) fn no_module(&self, name: &str, label: Label) -> Reply {
        let why = format!("no module `{name}` was seen: `--modules` lists them");
        Reply::new(Effect::Unknown, Some(label), why)
    }
}

impl Reply {
    pub(super) fn new(effect: Effect, label: Option<Label>, why: impl Into<String>) -> Reply {
        Reply { effect, label, why: why.into(), tries: Vec::new() }
    }

    /// It does nothing for the peak.
    pub(super) fn none(label: Label, why: impl Into<String>) -> Reply {
        Reply::new(Effect::None, Some(label), why)
    }

    pub(super) fn worse(label: Label, why: impl Into<String>) -> Reply {
        Reply::new(Effect::Worse, Some(label), why)
    }

    pub(super) fn unknown(why: impl Into<String>) -> Reply {
        Reply::new(Effect::Unknown, None, why)
    }

    /// What was asked is no change.
    pub(super) fn fact(why: impl Into<String>) -> Reply {
        Reply::new(Effect::Fact, None, why)
    }

    /// A lever that measures it.
    pub(super) fn tried_by(mut self, what: Try) -> Reply {
        self.tries.push(what);
        self
    }
}

/// Words that are names of modules too, and mean no module in a sentence.
#[rustfmt::skip]
const COMMON: &[&str] = &[
    "model", "loss", "memory", "the", "all", "in", "on", "to", "is", "it", "self", "module", "network", "net", "training",
    "up", "down", "out", "a", "and", "or", "of",
];

/// `encoder.blocks` of `self.encoder.blocks.*`.
fn plain(text: &str) -> &str {
    let text = text.trim_end_matches(".*").trim_matches('*');
    ["self.", "model."].iter().fold(text, |text, start| text.strip_prefix(start).unwrap_or(text))
}

/// Is it the path of a module, or the end of one, with a point in it?
pub(super) fn is_path(anatomy: &Anatomy, word: &str) -> bool {
    let text = plain(word);
    let is_known = |path: &str| {
        path == text || path.strip_suffix(text).is_some_and(|rest| rest.ends_with('.'))
    };
    text.contains('.') && anatomy.modules.iter().any(|(path, _)| is_known(path))
}

/// Is it `encoder.blocks.3`, where the list is called `blocks` or `encoder.blocks`?
fn is_block_of(path: &str, list: &str) -> bool {
    let Some((above, last)) = path.rsplit_once('.') else { return false };
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (above == list || above.strip_suffix(list).is_some_and(|rest| rest.ends_with('.')))
}

/// Is it what a module is called: a path, or the last part of one?
pub(super) fn is_module(anatomy: &Anatomy, word: &str) -> bool {
    let text = plain(word);
    let is_last = |path: &str| {
        path == text || path.rsplit('.').next() == Some(text) || is_block_of(path, text)
    };
    let is_plain = COMMON.contains(&text.to_lowercase().as_str());
    let is_known = anatomy.modules.iter().any(|(path, _)| is_last(path));
    // What looks like a path is one, and is said not to be there.
    !is_plain && (is_known || looks_like_path(text))
}

/// Functions and files have points in their names too.
fn is_call(text: &str) -> bool {
    let first = text.split('.').next().unwrap_or_default();
    let last = text.rsplit('.').next().unwrap_or_default();
    matches!(
        first,
        "torch"
            | "nn"
            | "F"
            | "gc"
            | "optimizer"
            | "optim"
            | "model"
            | "loss"
            | "cuda"
            | "self"
            | "bnb"
            | "bitsandbytes"
    ) || matches!(
        last,
        "py" | "yaml"
            | "json"
            | "backward"
            | "step"
            | "item"
            | "compile"
            | "to"
            | "cuda"
            | "eval"
            | "half"
    ) || text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn looks_like_path(text: &str) -> bool {
    text.contains('.') && text.split('.').all(is_name) && !is_call(text)
}

fn is_name(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Is it that module, or below it?
pub(super) fn is_inside(module: &str, path: &str) -> bool {
    module.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
