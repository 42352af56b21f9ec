//! Sentences about what was weighed.

use oom::account::Advised;
use oom::advice::Remedy;
use oom::{Account, Advice, Amount, Helps, Kind};

use super::Entry;
use crate::bytes;

/// `1.34 GiB`; both ends where the text leaves more open than its last digit.
pub(super) fn amount(amount: Amount) -> String {
    if LARGE <= amount.low {
        return large(amount);
    }
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

/// No GPU has that much: a size that was computed wrongly.
const LARGE: u64 = 10 << 40;

/// `127.99 TiB`; of an exabyte and more texts are not read to the last digit.
fn large(amount: Amount) -> String {
    match amount.low >> 60 {
        0 => format!("{:.2} TiB", amount.middle() as f64 / (1u64 << 40) as f64),
        _ => "1 EiB or more".to_owned(),
    }
}

/// `GPU 0`, or `the GPU`.
pub(super) fn card(account: &Account) -> String {
    account.device.map_or_else(|| "the GPU".to_owned(), |device| format!("GPU {device}"))
}

/// `rank 3 (GPU 3)`, `GPU 1`; `None` where the text says neither.
pub(super) fn place(account: &Account) -> Option<String> {
    match (account.rank, account.device) {
        (Some(rank), Some(device)) => Some(format!("rank {rank} (GPU {device})")),
        (Some(rank), None) => Some(format!("rank {rank}")),
        (None, Some(device)) => Some(format!("GPU {device}")),
        (None, None) => None,
    }
}

/// What maintainers say, each with its source.
pub(super) fn facts(entry: &Entry) -> Vec<String> {
    let says = |fact: &oom::families::Fact| format!("{} ({})", fact.says, fact.source);
    oom::facts(&entry.account, entry.balance.cause).into_iter().map(says).collect()
}

/// `train.py:387 in forward: x = self.layer(x)`
pub(super) fn frame(frame: &oom::Frame) -> String {
    let function = match frame.function.as_str() {
        "" => String::new(),
        function => format!(" in {function}"),
    };
    let source =
        if frame.source.is_empty() { String::new() } else { format!(": {}", frame.source) };
    format!("{}:{}{function}{source}", frame.file, frame.line)
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
                "only asking for less helps: this request alone is {gap} more than there is"
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
        "pool" => "the pool",
        "held" => "allocated",
        "allocated" => "allocated by PyTorch",
        "private_pools" => "of that in private pools",
        "reserved_unallocated" => "reserved but unallocated",
        "outside_pytorch" => "this process outside PyTorch",
        "other_processes" => "other processes",
        "not_told" => "free, context and other processes",
        "outside_or_others" => "context and other processes",
        "unlisted" => "the driver, or not listed",
        "limit" => "most that PyTorch may use",
        "longest_buffer" => "the longest buffer",
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
        "at_most_pytorch" => "PyTorch and others, at most",
        "unexplained" => "other processes, or unexplained",
        "not_in_tensors" => "cache, context, other processes",
        "cache_and_fragments" => "cache and fragments",
        "weights" => "weights in float32",
        "trained" => "weights, gradients, Adam (16 B)",
        "not_parameters" => "activations and all else",
        other => other,
    }
}
