//! A size that is turned: what it is now, what it is to become, and what that does.

use super::words::Said;
use super::{Effect, Question, Reply, Try};
use crate::label::Label;

/// A size of the script's: what it is now, and what follows it.
pub(super) struct Size {
    pub(super) noun: &'static str,
    /// What it is now and by what that is known, if it is.
    pub(super) now: Option<(u64, String)>,
    /// The setting of the command that turns it.
    pub(super) knob: Option<String>,
    /// Bytes of the peak that follow it; all else stays whatever it is.
    pub(super) follows: u64,
    pub(super) label: Label,
    /// What follows it, as a sentence's beginning.
    pub(super) what: String,
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

pub(super) fn turn(question: &Question<'_>, size: Size, is_inverse: bool) -> Reply {
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
    if target == Some(0) {
        let why = format!("a {} of 0 is no script that runs; {}", size.noun, size.what);
        return Reply::new(
            Effect::Unknown,
            Some(size.label),
            format!("{why}. `fathom run` tries any other"),
        );
    }
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
pub(super) fn of_command(
    question: &Question<'_>,
    names: &[&str],
) -> (Option<(u64, String)>, Option<String>) {
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
