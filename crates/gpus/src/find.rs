//! From what people write to a card: `3090`, `A100 80GB`, `NVIDIA GeForce RTX 3090`.
//!
//! A name is cut into words of letters and words of digits, so that case, blanks and dashes do not
//! matter. First the whole name must fit, then all its words must occur in the name of a card.

use std::fmt;

use crate::card::Card;
use crate::table;

/// Words that tell no card from another.
const NOISE: [&str; 7] = ["nvidia", "geforce", "tesla", "gpu", "generation", "edition", "memory"];

/// Words that people leave out at the front.
const PREFIXES: [&str; 4] = ["rtx", "gtx", "quadro", "jetson"];

/// Other names of a card, in the words of the trade.
const ALIASES: [(&str, &str); 8] = [
    ("h100 sxm", "h100-80g"),
    ("h100 sxm5", "h100-80g"),
    ("h100 80gb sxm5", "h100-80g"),
    ("h200 sxm", "h200"),
    ("p100 16gb", "p100"),
    ("rtx 6000 pro", "rtx-pro6000"),
    ("rtx pro 6000 blackwell server edition", "rtx-pro6000"),
    ("dgx spark", "gb10"),
];

/// Why a name does not lead to one card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// No card has such a name.
    Unknown {
        /// What was asked for.
        name: String,
        /// The catalogue's names that look most like it, best first.
        near: Vec<&'static str>,
    },
    /// Several cards have such a name, as when a card was sold with several memories.
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The catalogue's names it can mean.
        candidates: Vec<&'static str>,
    },
}

impl NotFound {
    /// What to try instead, to print after `hint: `.
    pub fn hint(&self) -> Option<String> {
        match self {
            NotFound::Unknown { near, .. } if near.is_empty() => None,
            NotFound::Unknown { near, .. } => Some(format!("did you mean {}?", quote(near, "or"))),
            NotFound::Ambiguous { candidates, .. } => {
                Some(format!("choose {}", quote(candidates, "or")))
            }
        }
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotFound::Unknown { name, .. } => write!(f, "unknown GPU `{name}`"),
            NotFound::Ambiguous { name, candidates } => {
                write!(f, "`{name}` is the name of several GPUs: {}", quote(candidates, "and"))
            }
        }
    }
}

impl std::error::Error for NotFound {}

/// The card that a name means.
pub fn find(name: &str) -> Result<&'static Card, NotFound> {
    let words = words(name);
    let key = words.concat();
    let exact = |card: &Card| keys(card).contains(&key);
    let partial = |card: &Card| {
        let known: Vec<String> = self::words(&format!("{} {}", card.name, card.title));
        !words.is_empty() && words.iter().all(|word| known.contains(word))
    };
    let mut found: Vec<&'static Card> = table::cards().iter().filter(|card| exact(card)).collect();
    if found.is_empty() {
        found = table::cards().iter().filter(|card| partial(card)).collect();
    }
    match found.as_slice() {
        [card] => Ok(card),
        [] => Err(NotFound::Unknown { name: name.to_owned(), near: near(&key) }),
        several => Err(NotFound::Ambiguous {
            name: name.to_owned(),
            candidates: several.iter().map(|card| card.name).collect(),
        }),
    }
}

/// The words of a name: lower case, letters apart from digits, without noise; `80GB` becomes `80 g`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut joined = false;
    for c in name.chars() {
        let fits = |word: &String| word.chars().all(|o| o.is_ascii_digit() == c.is_ascii_digit());
        match words.last_mut() {
            _ if !c.is_ascii_alphanumeric() => joined = false,
            Some(word) if joined && fits(word) => word.push(c.to_ascii_lowercase()),
            _ => {
                words.push(c.to_ascii_lowercase().to_string());
                joined = true;
            }
        }
    }
    for at in 1..words.len() {
        let after_number = words[at - 1].chars().all(|c| c.is_ascii_digit());
        if after_number && ["gb", "gib"].contains(&words[at].as_str()) {
            words[at] = "g".to_owned();
        }
    }
    words.retain(|word| !NOISE.contains(&word.as_str()));
    words
}

/// Every whole name of a card: the catalogue's, the driver's, the aliases, also without a prefix.
fn keys(card: &Card) -> Vec<String> {
    let aliases = ALIASES.iter().filter(|(_, name)| *name == card.name).map(|(alias, _)| *alias);
    let mut keys = Vec::new();
    for name in [card.name, card.title].into_iter().chain(aliases) {
        let words = words(name);
        keys.push(words.concat());
        if words.first().is_some_and(|word| PREFIXES.contains(&word.as_str())) {
            keys.push(words[1..].concat());
        }
    }
    // A bare `RTX 6000` may also mean its successors: leave it to the words to say so.
    keys.retain(|key| !["rtx6000", "6000"].contains(&key.as_str()));
    keys
}

/// The names nearest to a key, three at most and no further away than a third of its letters.
fn near(key: &str) -> Vec<&'static str> {
    let all: Vec<(usize, &'static str)> = table::cards()
        .iter()
        .filter_map(|card| Some((keys(card).iter().map(|k| distance(k, key)).min()?, card.name)))
        .collect();
    let best = all.iter().map(|(distance, _)| *distance).min().unwrap_or_default();
    let nearest = all.into_iter().filter(|(d, _)| *d == best && best <= key.len() / 3);
    nearest.take(3).map(|(_, name)| name).collect()
}

/// Letters to insert, remove, replace or swap with their neighbour to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let best = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { best.min(table[i - 2][j - 2] + 1) } else { best }
            };
        }
    }
    table[a.len()][b.len()]
}

/// Names in backticks, as in "`a`, `b` or `c`".
fn quote(names: &[&str], joint: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {joint} {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: &str) {
        let found = match find(name) {
            Ok(card) => card.name.to_owned(),
            Err(error) => format!("{error}; {}", error.hint().unwrap_or_default()),
        };
        assert_eq!(found, expected, "for `{name}`");
    }

    #[test]
    fn spelling_does_not_matter() {
        for name in ["rtx3090", "RTX 3090", "NVIDIA GeForce RTX 3090", "3090", "rtx_3090"] {
            check(name, "rtx3090");
        }
        check("geforce rtx 3090 ti", "rtx3090ti");
        check("A100 80GB", "a100-80g");
        check("A100-SXM4-80GB", "a100-80g");
        check("NVIDIA A100 80GB PCIe", "a100-80g-pcie");
        check("h100 sxm", "h100-80g");
        check("RTX A6000", "rtx-a6000");
        check("rtx 6000 ada", "rtx6000-ada");
        check("4090 Laptop GPU", "rtx4090-laptop");
        check("rtx 3060 12 GB", "rtx3060-12g");
        check("GB200", "gb200");
        check("Tesla T4", "t4");
    }

    #[test]
    fn every_name_leads_home() {
        for card in table::cards() {
            check(card.name, card.name);
        }
    }

    #[test]
    fn a_bare_name_of_several_cards_is_refused() {
        check(
            "RTX 3080",
            "`RTX 3080` is the name of several GPUs: `rtx3080-10g` and `rtx3080-12g`; \
             choose `rtx3080-10g` or `rtx3080-12g`",
        );
        check(
            "v100 pcie",
            "`v100 pcie` is the name of several GPUs: `v100-16g-pcie` and `v100-32g-pcie`; \
             choose `v100-16g-pcie` or `v100-32g-pcie`",
        );
        check(
            "rtx 6000",
            "`rtx 6000` is the name of several GPUs: `quadro-rtx6000`, `rtx-a6000`, `rtx6000-ada` \
             and `rtx-pro6000`; choose `quadro-rtx6000`, `rtx-a6000`, `rtx6000-ada` or \
             `rtx-pro6000`",
        );
        let Err(NotFound::Ambiguous { candidates, .. }) = find("a100") else {
            panic!("`a100` was sold with two memories and on two boards")
        };
        assert_eq!(candidates.len(), 4);
    }

    #[test]
    fn an_unknown_name_gets_a_hint() {
        check("rtx3900", "unknown GPU `rtx3900`; did you mean `rtx3090`?");
        check("rtx 4099", "unknown GPU `rtx 4099`; did you mean `rtx4090`?");
        check("radeon", "unknown GPU `radeon`; ");
        check("", "unknown GPU ``; ");
        check("NVIDIA", "unknown GPU `NVIDIA`; ");
    }
}
