//! Messages in a squeezed text: where they begin, whose they are, and how far they go.

use std::collections::BTreeSet;

use crate::account::Account;
use crate::clean::Squeezed;
use crate::families::{Family, Head, Place, TABLE, Window};

/// The longest message: PyTorch lists every process of the card.
const LONGEST: usize = 4000;

/// What is looked at in front of a message.
const BEFORE: usize = 600;

/// Nobody reads more of them.
const MOST: usize = 50_000;

/// A head that was found.
#[derive(Clone, Copy)]
struct Found {
    at: usize,
    family: &'static Family,
    head: &'static Head,
}

/// Every message, in order.
pub(crate) fn read(squeezed: &Squeezed) -> Vec<Account> {
    let text = squeezed.text.as_str();
    let heads = heads(squeezed);
    let mut accounts = Vec::new();
    for (index, found) in heads.iter().enumerate() {
        let next = heads.get(index + 1).map_or(text.len(), |next| next.at);
        let end = next.min(found.at + LONGEST).min(text.len());
        // An amount may stand before what names it: `(GPU 0; 10.76 GiB total capacity;`.
        let words = found.head.words;
        let begin = if words == "totalcapacity;" { found.at.saturating_sub(24) } else { found.at };
        let window = Window {
            text: &text[begin..end],
            before: &text[begin.saturating_sub(BEFORE)..begin],
            head: words,
        };
        let mut account = Account::new(found.family, squeezed.line(found.at));
        (found.family.fill)(&mut account, &window);
        // Prose uses these words too; a message has a number, and nobody is refused nothing.
        let is_bare = matches!(words, "triedtoallocate" | "totalcapacity;");
        let number = account.figures.tried.or(account.figures.capacity);
        if !is_bare || number.is_some_and(|number| number.high != 0) {
            accounts.push(account);
        }
    }
    accounts
}

/// Where messages begin, in order. What stands inside a message begins none.
fn heads(squeezed: &Squeezed) -> Vec<Found> {
    let text = squeezed.text.as_str();
    let mut all: Vec<Found> = Vec::new();
    for family in TABLE {
        for head in family.heads {
            let places = text.match_indices(head.words).map(|(at, _)| Found { at, family, head });
            all.extend(places.filter(|found| fits(squeezed, found)).take(MOST));
        }
    }
    all.sort_by_key(|found| (found.at, std::cmp::Reverse(found.head.words.len())));
    without_quotes(&mut all, squeezed);
    let mut heads: Vec<Found> = Vec::new();
    for found in all.into_iter().take(MOST) {
        let inside = heads.last().is_some_and(|last| {
            let distance = found.at - last.at;
            let overlaps = distance < last.head.words.len();
            overlaps || (distance < found.head.near && last.head.near < found.head.near)
        });
        if !inside {
            heads.push(found);
        }
    }
    heads
}

/// A traceback shows the line that raises, `raise ValueError("…`; the message itself follows, if it was not cut off.
fn without_quotes(all: &mut Vec<Found>, squeezed: &Squeezed) {
    let is_source = |found: &Found| {
        let (start, _) = squeezed.around(found.at);
        let before = &squeezed.text[start..found.at];
        before.starts_with("raise") && before.ends_with(['"', '\''])
    };
    let said: BTreeSet<&str> =
        all.iter().filter(|found| !is_source(found)).map(|found| found.head.words).collect();
    all.retain(|found| !(is_source(found) && said.contains(found.head.words)));
}

fn fits(squeezed: &Squeezed, found: &Found) -> bool {
    let text = squeezed.text.as_str();
    let (start, end) = squeezed.around(found.at);
    let place = Place {
        above: &text[..start],
        before: &text[start..found.at],
        line: &text[found.at..end],
        rest: &text[found.at..(found.at + LONGEST).min(text.len())],
    };
    (found.head.fits)(&place)
}
