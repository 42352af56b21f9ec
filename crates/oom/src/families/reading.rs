//! Numbers known by the words next to them, so that a message may be cut, quoted or reordered.
//!
//! The forms of PyTorch's caching allocator:
//!
//! - up to 1.3: `(GPU 0; 10.92 GiB total capacity; 8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB
//!   cached)`, where cached means reserved and not allocated;
//! - 1.4 to 2.0: `…; 9.23 GiB reserved in total by PyTorch)`, with `…; 3.89 GiB allowed;` under a limit;
//! - 2.1 on: `GPU 0 has a total capacty of …` and sentences; the word was spelled right in 2.2;
//! - `cudaMallocAsync`: `Currently allocated : …`, `Requested : …`, `Device limit : …`.

use crate::account::{Account, Advised, Count, Figures, Process, Tensor};
use crate::amount::Amount;

use super::Window;

/// The text behind the first place of some words.
pub(super) fn rest<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    Some(&text[text.find(words)? + words.len()..])
}

/// The amount in front of the first place of some words.
pub(super) fn before(text: &str, words: &str) -> Option<Amount> {
    let at = text.find(words)?;
    Some(Amount::before(&text[..at])?.0)
}

/// The amount behind the first place of some words.
pub(super) fn behind(text: &str, words: &str) -> Option<Amount> {
    Some(Amount::at(rest(text, words)?)?.0)
}

/// The whole number that a text begins with; thousands may be set off by commas.
pub(super) fn whole(text: &str) -> Option<u64> {
    let length = text.bytes().take(27).take_while(|c| c.is_ascii_digit() || *c == b',').count();
    text[..length].replace(',', "").parse().ok()
}

/// The whole number behind the first place of some words.
pub(super) fn number(text: &str, words: &str) -> Option<u64> {
    whole(rest(text, words)?)
}

/// The same as bytes.
pub(super) fn bytes(text: &str, words: &str) -> Option<Amount> {
    number(text, words).map(Amount::exactly)
}

/// The number of a device or rank behind the first place of some words.
pub(super) fn ordinal(text: &str, words: &str) -> Option<u32> {
    let rest = rest(text, words)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[..digits].parse().ok().filter(|number| *number < 1 << 20)
}

/// Notes a count, where there is one.
pub(super) fn count(account: &mut Account, name: &'static str, value: Option<u64>) {
    account.counts.extend(value.map(|value| Count { name, value }));
}

/// Reads a message of the caching allocator.
pub(super) fn caching_allocator(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    let any = |ways: &[Option<Amount>]| ways.iter().copied().flatten().next();
    let more_than_all =
        text.contains("triedtoallocatemorethan1eb").then(|| Amount::exactly(1 << 60));
    account.figures = Figures {
        tried: any(&[
            behind(text, "triedtoallocate"),
            behind(text, "requestedsize:"),
            behind(text, "requested:"),
            more_than_all,
        ]),
        capacity: any(&[
            behind(text, "totalcapacityof"),
            behind(text, "totalcapactyof"),
            before(text, "totalcapacity"),
            behind(text, "devicelimit:"),
        ]),
        free: any(&[
            before(text, "isfree"),
            before(text, "free;"),
            behind(text, "free(accordingtocuda):"),
        ]),
        allocated: any(&[
            before(text, "alreadyallocated"),
            before(text, "isallocatedbypytorch"),
            behind(text, "currentlyallocated:"),
        ]),
        reserved: before(text, "reservedintotal"),
        unallocated: any(&[
            before(text, "isreservedbypytorchbutunallocated"),
            before(text, "cached)"),
        ]),
        private_pools: before(text, "allocatedinprivatepools"),
        limit: any(&[
            before(text, "allowed;"),
            behind(text, "pytorchlimit(setbyuser-suppliedmemoryfraction):"),
        ]),
        ..Figures::default()
    };
    account.device = ordinal(text, "(gpu")
        .or_else(|| ordinal(text, ".gpu"))
        .or_else(|| ordinal(text, "ondevice"));
    in_use(account, text);
    complete(&mut account.figures);
    advised(account, text);
}

/// `Process 1234 has 5.00 GiB memory in use.`, `this process has …`
fn in_use(account: &mut Account, text: &str) {
    const WORDS: &str = "memoryinuse";
    let mut from = 0;
    while let Some(found) = text[from..].find(WORDS) {
        let sentence = &text[from..from + found];
        from += found + WORDS.len();
        let Some((memory, at)) = Amount::before(sentence) else { continue };
        let subject = &sentence[..at];
        if subject.ends_with("thisprocesshas") {
            account.figures.this_process = Some(memory);
        } else if let Some(rest) = subject.strip_suffix("has") {
            let digits = rest.bytes().rev().take_while(u8::is_ascii_digit).count();
            let (words, pid) = rest.split_at(rest.len() - digits);
            if let (true, Ok(pid)) = (words.ends_with("process"), pid.parse()) {
                account.processes.push(Process { pid, name: String::new(), memory });
            }
        }
    }
}

/// Of allocated, unallocated and reserved two give the third.
pub(crate) fn complete(figures: &mut Figures) {
    match (figures.allocated, figures.reserved, figures.unallocated) {
        (Some(allocated), None, Some(unallocated)) => {
            figures.reserved = Some(allocated.plus(unallocated));
        }
        (Some(allocated), Some(reserved), None) => {
            figures.unallocated = reserved.minus(allocated);
        }
        _ => {}
    }
}

fn advised(account: &mut Account, text: &str) {
    let words = [
        ("expandable_segments:true", Advised::ExpandableSegments),
        ("max_split_size_mb", Advised::MaxSplitSize),
        ("useempty_cache", Advised::EmptyCache),
        ("use`empty_cache`", Advised::EmptyCache),
    ];
    let said = words.iter().filter(|(words, _)| text.contains(words));
    account.advises = said.map(|(_, advice)| *advice).take(1).collect();
}

/// Statistics of the allocator that TensorFlow and XLA share: `Limit: 503270604 InUse: 503061248 …`
pub(super) fn pool(account: &mut Account, text: &str) {
    let Some(stats) = rest(text, "limit:") else { return };
    let limit = whole(stats).filter(|_| stats.contains("inuse:"));
    account.figures.limit = limit.map(Amount::exactly);
    account.figures.allocated = limit.and_then(|_| bytes(stats, "inuse:"));
    account.figures.peak_allocated = limit.and_then(|_| bytes(stats, "maxinuse:"));
}

/// Types of TensorFlow, XLA and NumPy, with the bytes of an element.
#[rustfmt::skip]
const TYPES: [(&str, u64); 30] = [
    ("float", 4), ("float16", 2), ("float32", 4), ("float64", 8), ("double", 8), ("half", 2), ("bfloat16", 2),
    ("int64", 8), ("int32", 4), ("int16", 2), ("int8", 1), ("uint8", 1), ("bool", 1), ("complex64", 8),
    ("complex128", 16), ("f64", 8), ("f32", 4), ("f16", 2), ("bf16", 2), ("s64", 8), ("s32", 4), ("s16", 2),
    ("uint16", 2), ("uint32", 4), ("uint64", 8), ("s8", 1), ("u32", 4), ("u8", 1), ("pred", 1), ("c64", 8),
];

/// The longest shape that is read.
const DIMENSIONS: usize = 16;

/// `[64,2016,9,9]`, and what follows it.
pub(super) fn shape(text: &str) -> Option<(Vec<u64>, &str)> {
    let inner = text.strip_prefix('[')?;
    let end = inner.bytes().take(DIMENSIONS * 12).position(|byte| byte == b']')?;
    let sizes = inner[..end].split(',').filter(|size| !size.is_empty());
    let sizes: Option<Vec<u64>> = sizes.map(|size| size.parse().ok()).collect();
    let sizes = sizes.filter(|sizes| sizes.len() <= DIMENSIONS)?;
    Some((sizes, &inner[end + 1..]))
}

/// `(1000,1000000)`, as NumPy writes it.
pub(super) fn tuple(text: &str) -> Option<Vec<u64>> {
    let sizes = text.split(')').next().unwrap_or_default();
    let sizes = sizes.get(..sizes.len().min(DIMENSIONS * 12)).unwrap_or_default();
    shape(&format!("[{sizes}]")).map(|(sizes, _)| sizes)
}

pub(super) fn tensor(shape: Vec<u64>, dtype: &str) -> Tensor {
    let known = TYPES.iter().find(|(name, _)| *name == dtype);
    Tensor { shape, dtype: dtype.to_owned(), element_bytes: known.map(|(_, bytes)| *bytes) }
}
