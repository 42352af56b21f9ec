//! The first line of an answer: what was tried, of whose memory, and what was missing.

use oom::{Account, Amount, Cause, Kind, Memory};

use super::Entry;
use super::sentences::{amount, card};

/// The first line, without its word.
pub(super) fn verdict(entry: &Entry) -> String {
    let account = &entry.account;
    let figures = &account.figures;
    let speaker = speaker(account);
    let Some(tried) = account.tried() else { return without_size(entry) };
    let tried = amount(tried);
    let left = figures.free.map(|free| format!(" with {} free", amount(free))).unwrap_or_default();
    let of = figures.capacity.map(|all| format!(" of {}", amount(all))).unwrap_or_default();
    let short = entry.balance.short.map(|short| format!(": {} short", amount(short)));
    let short = short.unwrap_or_default();
    match (account.memory, account.kind) {
        (Memory::Host, _) => {
            format!(
                "{tried} of the host's memory was tried by {speaker}{left}, not of the GPU's{short}"
            )
        }
        (Memory::Shared, _) => {
            format!("{tried} of the host's shared memory (/dev/shm), not of the GPU's")
        }
        (Memory::OnChip, _) => {
            let most = figures
                .limit
                .map_or(String::new(), |most| format!(", {} is the most", exact(most)));
            let tried = account.tried().map_or("?".to_owned(), exact);
            format!("{tried} of on-chip memory for one block of a kernel{most}")
        }
        (_, Kind::Mps) => format!("{tried} was tried on an Apple processor{short}"),
        (_, Kind::Server) if entry.balance.cause == Cause::Cache => {
            let there = figures.free.map(|free| format!(", {} is there", amount(free)));
            format!("{speaker} needs {tried} for its KV cache{}{short}", there.unwrap_or_default())
        }
        (_, kind) if kind.is_caching_allocator() => {
            format!("{tried} was tried{left} on {}{of}{short}", card(account))
        }
        (Memory::NotTold, _) => format!("{tried} was tried by {speaker}{left}{of}{short}"),
        _ => {
            let on = account.device.map_or(String::new(), |device| format!(" on GPU {device}"));
            let of = figures.capacity.map(|all| format!(" on a device of {}", amount(all)));
            format!("{tried} was tried by {speaker}{left}{on}{}{short}", of.unwrap_or_default())
        }
    }
}

/// Kernels count single bytes.
fn exact(amount: Amount) -> String {
    format!("{} B", amount.middle())
}

/// Who speaks: a library that the text names, else the family.
fn speaker(account: &Account) -> &str {
    match account.kind {
        Kind::Library if !account.who.is_empty() => &account.who,
        _ => account.family.speaker,
    }
}

fn without_size(entry: &Entry) -> String {
    let account = &entry.account;
    let part = |part: Option<Amount>| part.map_or("?".to_owned(), amount);
    let figures = &account.figures;
    let used = || {
        let of = figures.capacity.or(figures.limit).map(|all| format!(" of {}", amount(all)));
        figures.used.map(|used| format!("{}{}", amount(used), of.unwrap_or_default()))
    };
    match (account.memory, account.kind) {
        (_, Kind::Smi) => {
            let used = used().unwrap_or("?".to_owned());
            format!("{used} on {}{}, as nvidia-smi shows it", card(account), named(account))
        }
        (_, Kind::Summary) => {
            let size = part(figures.reserved.or(figures.allocated));
            format!("{size} by PyTorch on {}, as its memory_summary shows it", card(account))
        }
        (Memory::Shared, _) => "shared memory of the host (/dev/shm), not of the GPU".to_owned(),
        (Memory::Host, _) if account.family.id == "killed" && !account.sure => {
            "a process was ended by signal 9: if for memory, then for the host's, not the GPU's"
                .to_owned()
        }
        (Memory::Host, _) => {
            let used = used().map_or(String::new(), |used| format!(": {used} was in use"));
            let process = account.processes.first().filter(|_| account.family.id == "oom_killer");
            let process = process
                .map(|process| format!(": `{}` had {}", process.name, amount(process.memory)));
            format!("the host's memory, not the GPU's{}{used}", process.unwrap_or_default())
        }
        (_, Kind::Server) if entry.balance.cause == Cause::Cache => tokens(account)
            .unwrap_or_else(|| format!("{} has no room for its KV cache", account.family.speaker)),
        (_, Kind::Server) if batch(account).is_some() => {
            format!(
                "{speaker} had no room for {}",
                batch(account).unwrap_or_default(),
                speaker = speaker(account)
            )
        }
        (_, Kind::Mps) => {
            "on an Apple processor; the message does not say how much was tried".to_owned()
        }
        (_, Kind::CudaError | Kind::Library | Kind::Framework | Kind::Server) => {
            without_numbers(entry)
        }
        (_, Kind::Jax | Kind::TensorFlow) if figures.limit.is_some() => {
            format!(
                "{}'s pool has {} of {}",
                account.family.speaker,
                part(figures.allocated),
                part(figures.limit)
            )
        }
        (Memory::NotTold, _) => format!(
            "{} had no memory left; the message says neither how much was tried nor whose memory it was",
            speaker(account)
        ),
        _ => {
            let free = figures.free.zip(figures.capacity);
            let free = free.map(|(free, all)| format!("{} free of {}", amount(free), amount(all)));
            let free = free.map_or(String::new(), |free| format!(" with {free}"));
            format!("on {}{free}; the message does not say how much was tried", card(account))
        }
    }
}

fn named(account: &Account) -> String {
    if account.card.is_empty() { String::new() } else { format!(" ({})", account.card) }
}

fn without_numbers(entry: &Entry) -> String {
    let account = &entry.account;
    let place = account.device.map_or(String::new(), |device| format!(" on GPU {device}"));
    let had = match entry.balance.cause {
        Cause::NotMemory => "failed for another reason",
        Cause::Warning => "warns, nothing failed",
        _ if account.sure => "had no memory left",
        _ => "failed; memory is one of its reasons",
    };
    format!("{}{place} {had}; its message has no numbers", speaker(account))
}

/// The batch that a server tried before it serves.
fn batch(account: &Account) -> Option<String> {
    let count = account.counts.first()?;
    match count.name {
        "prefill_tokens" => Some(format!("a batch of {} tokens", count.value)),
        "total_tokens" => Some(format!("batches and cache of {} tokens", count.value)),
        "requests" => Some(format!("a batch of {} requests beside its KV cache", count.value)),
        _ => None,
    }
}

/// What the cache holds, where a server counts tokens.
pub(super) fn tokens(account: &Account) -> Option<String> {
    let count = |name: &str| {
        account.counts.iter().find(|count| count.name == name).map(|count| count.value)
    };
    let (asked, fit) = (count("tokens_asked")?, count("tokens_fit")?);
    let who = account.family.speaker;
    Some(format!(
        "a sequence of {asked} tokens does not fit into the KV cache of {who}: {fit} tokens do"
    ))
}
