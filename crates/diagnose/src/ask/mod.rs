//! Questions about a peak in a user's words, answered by who holds it.
//!
//! [`ask`] takes a question (`checkpoint encoder.blocks`, `batch 16`, `don't use amp`, `where does the memory go?`) and
//! says what the change could do to this peak: nothing, the opposite, or at most so many bytes; or what was measured. It tries
//! nothing itself: an [`Answer`] names the trials that would measure it, and whoever can run them puts what they gave
//! into it ([`Answer::measured`]). Where nothing follows from the recording, it says which command tells.
//!
//! `words.rs` takes the question apart, `topics.rs` finds what it is about, and each of the other files answers for one
//! kind of thing.

mod about;
mod adapters;
mod allocator;
mod attention;
mod copies;
mod gradients;
mod loss;
mod measured;
mod nothing;
mod optimizer;
mod parallel;
mod precision;
mod question;
mod recompute;
mod seen;
mod sizes;
#[cfg(test)]
mod tests;
mod topics;
mod turn;
mod words;

use std::ops::Range;

use anatomy::Anatomy;

use crate::finding::Finding;
use crate::label::Label;

use self::question::Question;
use self::words::Words;

pub use measured::{Change, Peaks};

/// What a change could do to the allocated peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it is about something else.
    None,
    /// It makes it larger.
    Worse,
    /// It lowers it by no more than this.
    AtMost(u64),
    /// It was tried: the peaks before and after.
    Measured(Change),
    /// No change was asked for: the answer is a fact of this run.
    Fact,
    /// That does not follow from what was measured.
    Unknown,
}

impl Effect {
    pub fn name(self) -> &'static str {
        match self {
            Effect::None => "none",
            Effect::Worse => "worse",
            Effect::AtMost(_) => "at_most",
            Effect::Measured(change) => change.name(),
            Effect::Fact => "fact",
            Effect::Unknown => "unknown",
        }
    }

    /// How it is known.
    pub fn known(self) -> &'static str {
        match self {
            Effect::Measured(_) | Effect::Fact => "measured",
            Effect::None | Effect::Worse | Effect::AtMost(_) => "derived",
            Effect::Unknown => "unknown",
        }
    }
}

/// A trial that would measure an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Try {
    /// A lever of the table that needs no more words.
    Lever(&'static str),
    /// `checkpoint` of these modules; of what a plan would choose, if there are none.
    Checkpoint(Vec<String>),
    /// `freeze` of these modules.
    Freeze(Vec<String>),
    /// The batch in so many parts.
    Accumulate(u32),
    /// Settings of the allocator.
    Allocator(String),
    /// A setting of the command at another value: its name as the command has it, without dashes.
    Knob { name: String, value: String },
    /// The script as it is, on a card or a size of memory.
    Card(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// As it was asked.
    pub question: String,
    /// What it could do.
    pub effect: Effect,
    /// How far it changes results; `None` if no change was asked for, or the question was not understood.
    pub label: Option<Label>,
    /// Why, with numbers of this run.
    pub why: String,
    /// Trials that would measure it, all at once; empty if none can.
    pub tries: Vec<Try>,
}

/// What a question is asked about.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    pub anatomy: &'a Anatomy,
    pub findings: &'a [Finding],
    /// The words that started the script; empty if they are not known.
    pub command: &'a [String],
}

/// What one topic says.
struct Reply {
    effect: Effect,
    label: Option<Label>,
    why: String,
    tries: Vec<Try>,
}

/// Topics of one question, at most: who asks about more asks about none.
const MOST_TOPICS: usize = 3;

/// Answers a question about the peak of a run.
pub fn ask(about: &About<'_>, question: &str) -> Answer {
    let mut words = Words::of(question);
    words.set_aside(|word| question::is_path(about.anatomy, word));
    let found = topics::find(&mut words, |word| question::is_module(about.anatomy, word));
    let replies: Vec<(&str, Reply)> = found
        .iter()
        .map(|(topic, span)| {
            let question = Question { about, words: &words, span: Range::clone(span) };
            (topic.name, (topic.reply)(&question))
        })
        .collect();
    let reply = match replies.len() {
        0 => not_understood(),
        1 => replies.into_iter().map(|row| row.1).next().unwrap_or_else(not_understood),
        2..=MOST_TOPICS => together(replies, about.anatomy.allocated_peak.allocated),
        _ => not_understood(),
    };
    let Reply { effect, label, why, tries } = reply;
    Answer { question: question.to_owned(), effect, label, why, tries }
}

fn not_understood() -> Reply {
    Reply::unknown(
        "this question was not understood, so nothing is guessed: `fathom run` with the change made measures it, and \
         `fathom diff` compares the two",
    )
}

/// Several changes at once: no more than all of them bring, nor than there is, and each for itself.
fn together(replies: Vec<(&str, Reply)>, allocated: u64) -> Reply {
    let effects: Vec<Effect> = replies.iter().map(|(_, reply)| reply.effect).collect();
    let most = effects.iter().try_fold(0u64, |sum, effect| match effect {
        Effect::AtMost(bytes) => Some(sum.saturating_add(*bytes)),
        Effect::None => Some(sum),
        _ => None,
    });
    let effect = match most {
        Some(0) => Effect::None,
        Some(most) => Effect::AtMost(most.min(allocated)),
        None if effects.iter().all(|effect| matches!(effect, Effect::Worse)) => Effect::Worse,
        None => Effect::Unknown,
    };
    let label = replies.iter().filter_map(|(_, reply)| reply.label).max();
    let can_try =
        replies.iter().all(|(_, reply)| !reply.tries.is_empty() || reply.effect == Effect::None);
    let each: Vec<String> =
        replies.iter().map(|(name, reply)| format!("{name}: {}", reply.why)).collect();
    let tries = replies.into_iter().flat_map(|(_, reply)| reply.tries).filter(|_| can_try);
    Reply { effect, label, why: each.join(". "), tries: tries.collect() }
}
