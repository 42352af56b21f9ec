//! A question as words: where a phrase stands in it, what is said about it there, and which numbers.

use std::ops::Range;

/// One word, lower case, letters and digits only.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    text: String,
    /// Which of the question's own words, between spaces, it is a part of.
    whole: usize,
}

/// A question taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    words: Vec<Word>,
    /// As they stand between spaces, without signs around them.
    wholes: Vec<String>,
    /// Which words a topic has been found in.
    is_taken: Vec<bool>,
    /// Which of the question's own words are names of modules.
    is_name: Vec<bool>,
}

/// What is said about a thing, right beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing but its name.
    Plain,
    More,
    Less,
    /// It is to go, or is not wanted.
    Without,
}

/// Beginnings of words for more of a thing.
#[rustfmt::skip]
const MORE: &[&str] = &[
    "increas", "larg", "bigger", "big", "more", "doubl", "higher", "rais", "longer", "deeper", "wider", "grow",
    "twice", "tripl", "enlarg", "add", "extend", "scal", "another", "extra", "quadrupl",
];

/// And for less.
#[rustfmt::skip]
const LESS: &[&str] = &[
    "reduc", "small", "less", "few", "lower", "halv", "half", "decreas", "short", "cut", "shrink", "divid",
    "quarter", "shallow", "narrow", "trim", "minimi", "down", "tiny", "crop",
];

/// What memory is called: less of it is what everybody wants, and says nothing about the thing.
#[rustfmt::skip]
const GOAL: &[&str] = &["memory", "peak", "vram", "usage", "footprint", "oom", "ram", "consumption", "gpu", "space", "gib", "gb", "it"];

/// Words before a thing that take it away.
#[rustfmt::skip]
const WITHOUT: &[&str] = &[
    "dont", "without", "no", "not", "disable", "disabling", "disabled", "remove", "removing", "stop", "avoid",
    "drop", "dropping", "never", "off", "skip", "skipping", "eliminate", "ditch", "undo", "uninstall",
];

/// Words behind it that do.
const OFF: &[&str] = &["off", "false", "disabled", "removed"];

/// How far before a thing its direction or its negation stands, at most.
const BEFORE: usize = 4;

/// And how far behind it.
const BEHIND: usize = 4;

impl Words {
    pub(super) fn of(question: &str) -> Words {
        let plain: String = question.chars().filter(|c| !matches!(c, '\'' | '’' | '`')).collect();
        let is_sign = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '*');
        let wholes: Vec<String> = plain
            .split_whitespace()
            .map(|word| word.trim_matches(is_sign).to_owned())
            .filter(|word| !word.is_empty())
            .collect();
        let mut words = Vec::new();
        for (whole, text) in wholes.iter().enumerate() {
            let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
            words.extend(parts.map(|part| Word { text: part.to_lowercase(), whole }));
        }
        let is_taken = vec![false; words.len()];
        let is_name = vec![false; wholes.len()];
        Words { words, wholes, is_taken, is_name }
    }

    /// Where a phrase stands that no topic has been found in; a word of it that ends with `*` is the beginning of one.
    pub(super) fn find(&self, phrase: &str) -> Option<Range<usize>> {
        let wanted: Vec<&str> = phrase.split(' ').collect();
        let starts = 0..(self.words.len() + 1).saturating_sub(wanted.len());
        starts.map(|start| start..start + wanted.len()).find(|span| {
            let here = self.words[span.clone()].iter().zip(&wanted);
            !self.is_taken[span.clone()].contains(&true)
                && here.into_iter().all(|(word, wanted)| is_word(&word.text, wanted))
        })
    }

    /// Whether it stands anywhere, in a topic too.
    pub(super) fn has(&self, phrase: &str) -> bool {
        let fresh = Words { is_taken: vec![false; self.words.len()], ..self.clone() };
        fresh.find(phrase).is_some()
    }

    /// No other topic is looked for in these.
    pub(super) fn take(&mut self, span: &Range<usize>) {
        self.is_taken[span.clone()].fill(true);
    }

    fn text(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.text.as_str())
    }

    /// What is said about the thing whose name stands there.
    pub(super) fn said(&self, span: &Range<usize>) -> Said {
        if self.is_without(span) {
            return Said::Without;
        }
        let before = (span.start.saturating_sub(BEFORE)..span.start).rev();
        let behind = span.end..(span.end + BEHIND).min(self.words.len());
        let direction = |at: usize| {
            let counts = !self.is_taken[at] && !self.is_about_memory(at);
            counts.then(|| compared(self.text(at)))?
        };
        // `deeper`, `a smaller model`: the name itself may say it.
        let inside = span.clone().filter_map(|at| compared(self.text(at))).next();
        inside.or_else(|| before.chain(behind).find_map(direction)).unwrap_or(Said::Plain)
    }

    /// `reduce memory`, `lower the peak`, `less GPU memory`.
    fn is_about_memory(&self, at: usize) -> bool {
        (at + 1..at + 4)
            .take_while(|&next| !self.is_taken.get(next).copied().unwrap_or(true))
            .any(|next| GOAL.contains(&self.text(next)))
    }

    fn is_without(&self, span: &Range<usize>) -> bool {
        let before = span.start.saturating_sub(BEFORE - 1)..span.start;
        let negates = |at: usize| {
            let (word, next) = (self.text(at), self.text(at + 1));
            let asks_why = word == "not" && matches!(self.text(at.wrapping_sub(1)), "why" | "or");
            let gets_rid = word == "rid" && next == "of";
            let asks_effect = matches!(next, "effect" | "help" | "matter");
            !self.is_taken[at] && !asks_why && !asks_effect && (gets_rid || WITHOUT.contains(&word))
        };
        let is_off = |at: usize| OFF.contains(&self.text(at));
        before.into_iter().any(negates) || (span.end..span.end + 2).any(is_off)
    }

    /// `SGD instead of Adam`, `replace Adam with SGD`: what stands there is what is replaced.
    pub(super) fn is_replaced(&self, span: &Range<usize>) -> bool {
        let before = span.start.saturating_sub(3)..span.start;
        let behind = || (span.end..span.end + 3).map(|at| self.text(at));
        before.into_iter().any(|at| {
            let is_swapped =
                self.text(at).starts_with("replac") || self.text(at).starts_with("swap");
            is_swapped && behind().any(|word| matches!(word, "with" | "by" | "for"))
                || matches!(
                    (self.text(at), self.text(at + 1)),
                    ("instead", "of") | ("rather", "than")
                )
                || (self.text(at) == "from"
                    && (span.end..span.end + 2).any(|at| self.text(at) == "to"))
        })
    }

    /// The number that belongs to a thing, and the one that it was before, if that is said: `from 8 to 16`.
    pub(super) fn numbers(&self, span: &Range<usize>) -> (Option<u64>, Option<u64>) {
        let all: Vec<(usize, u64)> = (0..self.words.len())
            .filter(|at| !self.is_taken[*at] || span.contains(at))
            .filter_map(|at| Some((at, self.number(at)?)))
            .collect();
        let earlier = |at: usize| {
            let (last, other) = (self.text(at.wrapping_sub(1)), self.text(at.wrapping_sub(2)));
            matches!(last, "from" | "than" | "currently") || (other, last) == ("instead", "of")
        };
        let was = all.iter().find(|(at, _)| earlier(*at) && 1 < all.len()).map(|row| row.1);
        let new = all.iter().filter(|(at, number)| !(earlier(*at) && Some(*number) == was));
        let new: Vec<&(usize, u64)> = new.collect();
        let behind = new.iter().find(|(at, _)| span.end <= *at);
        let inside = new.iter().find(|(at, _)| span.contains(at));
        let before = new.iter().rfind(|(at, _)| *at < span.start);
        (inside.or(behind).or(before).map(|row| row.1), was)
    }

    /// The number right before one of these words: `4 GPUs`, `4x GPUs`, `4 A100 cards`.
    pub(super) fn count_of(&self, units: &[&str]) -> Option<u64> {
        let is_unit = |at: &usize| units.iter().any(|unit| is_word(self.text(*at), unit));
        let places = (0..self.words.len()).filter(is_unit);
        places.flat_map(|at| (at.saturating_sub(2)..at).rev()).find_map(|at| self.number(at))
    }

    /// A whole number, also `4k` and the first of `224x224`; neither a part of `0.999` nor of a name.
    fn number(&self, at: usize) -> Option<u64> {
        let word = &self.words[at];
        let whole = self.wholes.get(word.whole)?;
        let is_fraction = |c: char| c.is_ascii_digit() || c == '.';
        if whole.contains('.') && whole.chars().all(is_fraction) {
            return None;
        }
        let text = word.text.as_str();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text.get(..digits)?.parse().ok()?;
        match text.get(digits..)? {
            "" => Some(number),
            "k" => number.checked_mul(1024),
            rest if rest.starts_with('x') && rest.len() < 6 => Some(number),
            _ => None,
        }
    }

    /// No topic is looked for in these of the question's own words.
    pub(super) fn set_aside(&mut self, is_name: impl Fn(&str) -> bool) {
        for (word, is_taken) in self.words.iter().zip(&mut self.is_taken) {
            let whole = self.wholes.get(word.whole).map_or("", String::as_str);
            if !*is_taken && is_name(whole) {
                *is_taken = true;
                self.is_name[word.whole] = true;
            }
        }
    }

    /// The question's own words, between spaces, and whether a topic was found in each.
    pub(super) fn wholes(&self) -> impl Iterator<Item = (&str, bool)> {
        let taken = |whole: usize| {
            let mut words = self.words.iter().zip(&self.is_taken);
            !self.is_name[whole] && words.any(|(word, taken)| word.whole == whole && *taken)
        };
        self.wholes.iter().enumerate().map(move |(at, text)| (text.as_str(), taken(at)))
    }
}

/// More or less, if a word says so.
fn compared(word: &str) -> Option<Said> {
    let begins = |list: &[&str]| list.iter().any(|start| word.starts_with(start));
    match (begins(MORE), begins(LESS)) {
        (true, _) => Some(Said::More),
        (_, true) => Some(Said::Less),
        _ => None,
    }
}

/// Whether a word is what a phrase wants there; a plural is the word.
fn is_word(word: &str, wanted: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(start) => word.starts_with(start),
        None => word == wanted || (3 < word.len() && word.strip_suffix('s') == Some(wanted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(question: &str, thing: &str) -> Said {
        let words = Words::of(question);
        let span = words.find(thing).unwrap();
        words.said(&span)
    }

    #[test]
    fn a_phrase_is_whole_words() {
        assert!(Words::of("the semantic loss").find("ema").is_none());
        assert!(Words::of("what about EMA?").find("ema").is_some());
        assert!(Words::of("torch.cuda.empty_cache()").find("empty cache").is_some());
        assert!(Words::of("two layers").find("layer").is_some());
        assert!(Words::of("checkpointing").find("checkpoint*").is_some());
    }

    #[test]
    fn negation_stands_beside_the_thing() {
        for text in
            ["don't use amp", "without amp", "turn off amp", "amp=False", "get rid of the amp"]
        {
            assert_eq!(said(text, "amp"), Said::Without, "{text}");
        }
        for text in ["why does amp not help?", "amp", "why not use amp?", "does amp have no effect"]
        {
            assert_eq!(said(text, "amp"), Said::Plain, "{text}");
        }
    }

    #[test]
    fn less_memory_is_no_direction_of_the_thing() {
        assert_eq!(said("does a batch reduce memory", "batch"), Said::Plain);
        assert_eq!(said("will a bigger batch use less memory", "batch"), Said::More);
        assert_eq!(said("reduce the batch size", "batch"), Said::Less);
        assert_eq!(said("double the number of layers", "layer"), Said::More);
    }

    #[test]
    fn numbers_belong_to_the_thing() {
        let numbers = |question: &str, thing: &str| {
            let words = Words::of(question);
            let span = words.find(thing).unwrap();
            words.numbers(&span)
        };
        assert_eq!(numbers("batch 16", "batch"), (Some(16), None));
        assert_eq!(numbers("batch_size=16 instead of 8", "batch"), (Some(16), Some(8)));
        assert_eq!(numbers("a batch of 16 instead of 8", "batch"), (Some(16), Some(8)));
        assert_eq!(numbers("from 8 to 16 samples a batch", "batch"), (Some(16), Some(8)));
        assert_eq!(numbers("16 layers", "layer"), (Some(16), None));
        assert_eq!(numbers("resolution 224x224", "resolution"), (Some(224), None));
        assert_eq!(numbers("context 8k", "context"), (Some(8192), None));
        assert_eq!(numbers("ema decay 0.999", "ema"), (None, None));
    }
}
