//! The numbers of PyTorch's own messages, whatever their age.
//!
//! Each number is known by the words next to it, so that a message may be cut, quoted or reordered:
//!
//! - up to 1.3: `(GPU 0; 10.92 GiB total capacity; 8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB
//!   cached)`, where cached means reserved and not allocated;
//! - 1.4 to 2.0: `…; 9.23 GiB reserved in total by PyTorch)`, with `…; 3.89 GiB allowed;` under a limit;
//! - 2.1 on: `GPU 0 has a total capacty of …` and sentences; the word was spelled right in 2.2;
//! - `cudaMallocAsync`: `Currently allocated : …`, `Requested : …`, `Device limit : …`.

use crate::account::{Account, Advised, Figures, Process};
use crate::amount::Amount;

/// The amount in front of the first place of some words.
fn before(window: &str, words: &str) -> Option<Amount> {
    let at = window.find(words)?;
    Some(Amount::before(&window[..at])?.0)
}

/// The amount behind the first place of some words.
fn behind(window: &str, words: &str) -> Option<Amount> {
    let at = window.find(words)? + words.len();
    Some(Amount::at(&window[at..])?.0)
}

/// The number behind the first place of some words.
fn number(window: &str, words: &str) -> Option<u32> {
    let rest = &window[window.find(words)? + words.len()..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[..digits].parse().ok()
}

/// Reads a message of the caching allocator.
pub(crate) fn fill(account: &mut Account, window: &str) {
    let any = |ways: &[Option<Amount>]| ways.iter().copied().flatten().next();
    let more_than_all =
        window.contains("triedtoallocatemorethan1eb").then(|| Amount::exactly(1 << 60));
    account.figures = Figures {
        tried: any(&[
            behind(window, "triedtoallocate"),
            behind(window, "requestedsize:"),
            behind(window, "requested:"),
            more_than_all,
        ]),
        capacity: any(&[
            behind(window, "totalcapacityof"),
            behind(window, "totalcapactyof"),
            before(window, "totalcapacity"),
            behind(window, "devicelimit:"),
        ]),
        free: any(&[
            before(window, "isfree"),
            before(window, "free;"),
            behind(window, "free(accordingtocuda):"),
        ]),
        allocated: any(&[
            before(window, "alreadyallocated"),
            before(window, "isallocatedbypytorch"),
            behind(window, "currentlyallocated:"),
        ]),
        reserved: before(window, "reservedintotal"),
        unallocated: any(&[
            before(window, "isreservedbypytorchbutunallocated"),
            before(window, "cached)"),
        ]),
        private_pools: before(window, "allocatedinprivatepools"),
        limit: any(&[
            before(window, "allowed;"),
            behind(window, "pytorchlimit(setbyuser-suppliedmemoryfraction):"),
        ]),
        ..Figures::default()
    };
    account.device = number(window, "(gpu")
        .or_else(|| number(window, ".gpu"))
        .or_else(|| number(window, "ondevice"));
    in_use(account, window);
    complete(&mut account.figures);
    advised(account, window);
}

/// `Process 1234 has 5.00 GiB memory in use.`, `this process has …`
fn in_use(account: &mut Account, window: &str) {
    const WORDS: &str = "memoryinuse";
    let mut from = 0;
    while let Some(found) = window[from..].find(WORDS) {
        let sentence = &window[from..from + found];
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

fn advised(account: &mut Account, window: &str) {
    let words = [
        ("expandable_segments:true", Advised::ExpandableSegments),
        ("max_split_size_mb", Advised::MaxSplitSize),
        ("useempty_cache", Advised::EmptyCache),
        ("use`empty_cache`", Advised::EmptyCache),
    ];
    let said = words.iter().filter(|(words, _)| window.contains(words));
    account.advises = said.map(|(_, advice)| *advice).take(1).collect();
}

/// `MPS allocated: 5.56 GB, other allocations: 1.10 GB, max allowed: 6.80 GB). Tried to allocate …`
pub(crate) fn fill_mps(account: &mut Account, window: &str) {
    account.figures = Figures {
        tried: behind(window, "triedtoallocate"),
        allocated: behind(window, "mpsallocated:"),
        other: behind(window, "otherallocations:"),
        limit: behind(window, "maxallowed:"),
        ..Figures::default()
    };
    if window.contains("high_watermark_ratio") {
        account.advises.push(Advised::Watermark);
    }
}
