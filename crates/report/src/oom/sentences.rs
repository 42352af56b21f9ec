//! Sentences about what was weighed.

use oom::account::Advised;
use oom::advice::Remedy;
use oom::{Account, Advice, Amount, Cause, Helps, Kind, Known, Tensor};

use super::Entry;
use crate::bytes;

/// `1.34 GiB`; both ends where the text leaves more open than its last digit.
pub(super) fn amount(amount: Amount) -> String {
    let (low, high) = (bytes::text(amount.low), bytes::text(amount.high));
    let open = amount.high - amount.low;
    // Half of a last digit on each side is what the text itself rounds.
    let last_digit = if amount.high < bytes::GIB { bytes::MIB / 10 } else { bytes::GIB / 100 };
    if open <= last_digit + last_digit / 10 || low == high {
        return bytes::text(amount.middle());
    }
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// `GPU 0`, or `the card`.
pub(super) fn card(account: &Account) -> String {
    account.device.map_or_else(|| "the card".to_owned(), |device| format!("GPU {device}"))
}

/// The first line, without its word.
pub(super) fn verdict(entry: &Entry) -> String {
    let account = &entry.account;
    let figures = &account.figures;
    let Some(tried) = account.tried() else { return without_size(account) };
    let tried = amount(tried);
    let left = figures.free.map(|free| format!(" with {} free", amount(free))).unwrap_or_default();
    let of = figures.capacity.map(|all| format!(" of {}", amount(all))).unwrap_or_default();
    let short = entry.balance.short.map(|short| format!(": {} short", amount(short)));
    let short = short.unwrap_or_default();
    match account.kind {
        Kind::Host => format!("{tried} of the host's memory was tried, not of the card's"),
        Kind::TensorFlow if entry.balance.cause == Cause::Host => {
            format!("{tried} of the host's memory was tried by TensorFlow, not of the card's")
        }
        Kind::Jax => format!("{tried} was tried by JAX"),
        Kind::TensorFlow => format!("{tried} was tried by TensorFlow on {}", card(account)),
        Kind::Mps => format!("{tried} was tried on an Apple processor{short}"),
        _ => format!("{tried} was tried{left} on {}{of}{short}", card(account)),
    }
}

fn without_size(account: &Account) -> String {
    match account.kind {
        Kind::CudaError => "CUDA had no memory left; its message has no numbers".to_owned(),
        Kind::Library => format!("{} had no memory; its message has no numbers", account.who),
        Kind::Host if account.who == "shared memory" => {
            "shared memory of the host (/dev/shm), not of the card".to_owned()
        }
        Kind::Host => "a process was ended for the host's memory, not for the card's".to_owned(),
        Kind::Smi => {
            let name = if account.card.is_empty() {
                String::new()
            } else {
                format!(" ({})", account.card)
            };
            let part = |part: Option<Amount>| part.map_or("?".to_owned(), amount);
            let (used, all) = (part(account.figures.used), part(account.figures.capacity));
            format!("{used} of {all} on {}{name}, as nvidia-smi shows it", card(account))
        }
        Kind::Summary => {
            let reserved = account.figures.reserved.or(account.figures.allocated);
            let size = reserved.map_or("?".to_owned(), amount);
            format!("{size} by PyTorch on {}, as its memory_summary shows it", card(account))
        }
        _ => format!("on {}; the message does not say how much was tried", card(account)),
    }
}

/// Why it was refused, in sentences.
pub(super) fn why(entry: &Entry) -> Vec<String> {
    let (account, balance) = (&entry.account, &entry.balance);
    let figures = &account.figures;
    let text = |part: Option<Amount>| part.map_or("?".to_owned(), amount);
    let (tried, free) = (text(account.tried()), text(figures.free));
    let mut rows = vec![match balance.cause {
        Cause::LargerThanCard => format!(
            "{tried} is more than the whole card has ({}): no setting and no other process is the reason",
            text(figures.capacity)
        ),
        Cause::Limit => limit(account, &free),
        Cause::Pieces => format!(
            "PyTorch had {} reserved but unallocated: with {free} free enough for {tried}, but in pieces",
            text(figures.unallocated)
        ),
        Cause::OtherProcesses => {
            let (others, known) = balance.others.unwrap_or((Amount::exactly(0), Known::Assumed));
            let others = match known {
                Known::Assumed => format!("at least {} (assumed)", bytes::text(others.low)),
                _ => amount(others),
            };
            format!("other processes had {others} of the card: without them there was room")
        }
        Cause::Full => format!(
            "the card was full: {} allocated by PyTorch{}",
            text(figures.allocated),
            figures.unallocated.map_or(String::new(), |rest| format!(
                ", only {} reserved but unallocated",
                amount(rest)
            ))
        ),
        Cause::RoomWasLeft => format!(
            "the card counts {free} free, enough for {tried}: it was not full when that was counted"
        ),
        Cause::Host => {
            "the card has no part in this: the machine, or the limit of its container, has too \
                        little memory"
                .to_owned()
        }
        Cause::NotTold => return not_told(account),
        Cause::Nothing => return Vec::new(),
    }];
    if balance.cause == Cause::Host {
        rows.extend(account.tensor.iter().map(tensor));
    }
    if balance.cause == Cause::RoomWasLeft {
        rows.push(
            "what else can refuse: a limit (a memory fraction, a MIG or container slice), a page file \
             that is too small on Windows, a process that gave its memory back in between"
                .to_owned(),
        );
    }
    if balance.spilled {
        rows.push(
            "PyTorch has more than the card: the driver lends it memory of the host, as on Windows"
                .to_owned(),
        );
    }
    rows
}

fn limit(account: &Account, free: &str) -> String {
    let figures = &account.figures;
    let most = figures.limit.map_or("?".to_owned(), amount);
    match account.kind {
        Kind::Mps => format!(
            "PyTorch may use {most} here (its high watermark), and it and others had {} of that",
            figures
                .allocated
                .zip(figures.other)
                .map_or("most".to_owned(), |(a, b)| amount(a.plus(b)))
        ),
        _ => format!("a limit of {most} stopped it, not the card, which had {free} free"),
    }
}

fn not_told(account: &Account) -> Vec<String> {
    let text = match account.kind {
        Kind::Jax | Kind::TensorFlow => return elsewhere(account),
        Kind::Library if account.who.ends_with("(not initialized)") => {
            "a library that cannot start often finds the card full; a wrong driver or version says the same"
        }
        Kind::Library | Kind::CudaError => {
            "this memory is not PyTorch's: most often its allocator has taken the card and left too little"
        }
        _ => "the message has too few numbers to say why",
    };
    vec![text.to_owned()]
}

/// Not PyTorch: what can be said is arithmetic.
fn elsewhere(account: &Account) -> Vec<String> {
    let first = if account.kind == Kind::Jax { "first of the buffers it lists: " } else { "" };
    let mut rows: Vec<String> =
        account.tensor.iter().map(|named| format!("{first}{}", tensor(named))).collect();
    rows.push(
        "Fathom simulates PyTorch only: what the rest of the card held is not known".to_owned(),
    );
    rows
}

fn tensor(tensor: &Tensor) -> String {
    let shape = oom::Shape(tensor.shape.clone());
    match (tensor.bytes(), tensor.element_bytes) {
        (Some(bytes), Some(each)) => {
            format!("{shape} of {} ({each} B each) = {}", tensor.dtype, bytes::text(bytes))
        }
        _ => format!("{shape} of {}", tensor.dtype),
    }
}

/// One piece of advice, judged.
pub(super) fn advice(advice: &Advice, account: &Account) -> String {
    let tried = account.tried().map_or("?".to_owned(), amount);
    let said = if advice.said.is_some() { ", as the message advises," } else { "" };
    let what = match advice.remedy {
        Remedy::UseReserved => match advice.said {
            Some(Advised::MaxSplitSize) => "`max_split_size_mb`".to_owned(),
            Some(_) => "`expandable_segments:True`".to_owned(),
            None => "`expandable_segments:True` (torch 2.1 and newer)".to_owned(),
        },
        Remedy::StopOthers => "ending the other processes".to_owned(),
        Remedy::RaiseLimit if account.kind == Kind::Mps => "lifting the watermark".to_owned(),
        Remedy::RaiseLimit => "raising the limit".to_owned(),
        Remedy::EmptyCache => {
            return format!("`empty_cache`{said} cannot help: PyTorch does it before it gives up");
        }
        Remedy::AskForLess => {
            let gap = advice.gap.map_or("?".to_owned(), amount);
            return format!(
                "only asking for less helps: this request alone is {gap} more than the card"
            );
        }
    };
    // All that is in reach may not lie in one piece: it is the most there can be.
    let reach = advice.reach.map_or("?".to_owned(), |reach| bytes::text(reach.high));
    let gap = advice.gap.map_or("?".to_owned(), |gap| bytes::text(gap.low));
    match advice.helps {
        Helps::Beside => {
            format!("{what}{said} is not the point: what was free was enough by itself")
        }
        Helps::Can => format!("{what}{said} can help: at most {reach} in reach, {tried} was tried"),
        Helps::Cannot => {
            format!("{what}{said} cannot help: at most {reach} in reach, at least {gap} too little")
        }
        Helps::Open if advice.reach.is_none() => {
            format!("{what}{said} may help: the message does not say how much there would be")
        }
        Helps::Open => {
            format!(
                "{what}{said} may help: at most {reach} in reach, and the text rounds too much to tell"
            )
        }
    }
}

/// The name of a row of a ledger.
pub(super) fn row(name: &str) -> &str {
    match name {
        "free" => "free",
        "allocated" => "allocated by PyTorch",
        "private_pools" => "of that in private pools",
        "reserved_unallocated" => "reserved but unallocated",
        "outside_pytorch" => "this process outside PyTorch",
        "other_processes" => "other processes",
        "outside_or_others" => "context and other processes",
        "unlisted" => "the driver, or not listed",
        "limit" => "most that PyTorch may use",
        "other" => "other allocations",
        "left" => "left",
        "used" => "in use",
        "processes" => "of that by listed processes",
        "no_process" => "of that by no listed process",
        "smi" => "nvidia-smi",
        "reserved" => "reserved",
        "peak_reserved" => "reserved, at its peak",
        "peak_allocated" => "allocated, at its peak",
        "context" => "context",
        "unexplained" => "other processes, or unexplained",
        "not_in_tensors" => "cache, context, other processes",
        "cache_and_fragments" => "cache and fragments",
        "weights" => "weights in float32",
        "trained" => "weights, gradients, Adam (16 B)",
        "not_parameters" => "activations and all else",
        other => other,
    }
}
