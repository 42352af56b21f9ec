//! Why memory was refused, in sentences.

use oom::{Account, Amount, Cause, Kind, Known, Tensor};

use super::Entry;
use super::sentences::amount;
use super::verdict::tokens;
use crate::bytes;
use crate::sections::columns::share;

/// Why it was refused, in sentences.
pub(super) fn why(entry: &Entry) -> Vec<String> {
    let (account, balance) = (&entry.account, &entry.balance);
    if balance.cause == Cause::Nothing {
        return Vec::new();
    }
    let mut rows = vec![reason(entry)];
    rows.extend(account.tensor.iter().map(|named| {
        let first = if account.kind == Kind::Jax { "first of the buffers it lists: " } else { "" };
        format!("{first}{}", tensor(named))
    }));
    if let (Cause::Cache, Some(tokens), Some(_)) = (balance.cause, tokens(account), account.tried())
    {
        rows.insert(0, tokens);
    }
    rows.extend(contexts(account));
    rows.extend(account.other_error.map(|error| {
        format!(
            "the text also reports `{error}`: that is an error in a kernel, not a lack of memory, and calls after it \
             fail because of it. Look for the first error of the text"
        )
    }));
    if balance.cause == Cause::RoomWasLeft {
        rows.push(format!("what else can refuse: {}", else_refuses(account.kind)));
    }
    rows.extend(account.figures.planned.map(|all| {
        format!("the compiled program needs {} in all, as XLA planned it", amount(all))
    }));
    if balance.spilled {
        rows.push(
            "PyTorch has more than the GPU: the driver lends it memory of the host, as on Windows"
                .to_owned(),
        );
    }
    rows
}

/// What refuses memory beside a GPU that is full.
fn else_refuses(kind: Kind) -> &'static str {
    match kind {
        Kind::Xpu => {
            "the driver's limit for one allocation, a page file that is too small on Windows, a process that gave its \
             memory back in between"
        }
        Kind::Hip => {
            "a memory fraction, a page file that is too small on Windows, a driver that does not support the GPU yet, \
             a process that gave its memory back in between"
        }
        _ => {
            "a limit (a memory fraction, a MIG or container slice), a page file that is too small on Windows, a \
             process that gave its memory back in between"
        }
    }
}

/// The reason, in one sentence.
fn reason(entry: &Entry) -> String {
    let (account, balance) = (&entry.account, &entry.balance);
    let figures = &account.figures;
    let text = |part: Option<Amount>| part.map_or("?".to_owned(), amount);
    let (tried, free) = (text(account.tried()), text(figures.free));
    match balance.cause {
        Cause::LargerThanCard if figures.capacity.is_none() => {
            "one request too large: no GPU has that much; a size was most likely computed wrongly, or the memory that \
             it was read from was overwritten"
                .to_owned()
        }
        Cause::LargerThanCard if account.kind == Kind::Hip => format!(
            "one request too large: {tried} is more than the whole GPU has, as its driver counts it ({})",
            text(figures.capacity)
        ),
        Cause::LargerThanCard => format!(
            "one request too large: {tried} is more than the whole {} has ({}); no setting and no other process is \
             the reason",
            if account.family.id == "tpu" { "core" } else { "GPU" },
            text(figures.capacity)
        ),
        Cause::RequestTooLarge => too_large(account),
        Cause::Limit if !account.kind.is_caching_allocator() && figures.limit.is_none() => {
            account.family.means.to_owned()
        }
        Cause::Limit => limit(account, &free),
        Cause::Pieces if !account.kind.is_caching_allocator() => {
            format!("the pool had enough in all, but no free piece of {tried}: it is fragmented")
        }
        Cause::Pieces => format!(
            "PyTorch had {} reserved but unallocated: with {free} free enough for {tried}, but in pieces{}",
            text(figures.unallocated),
            hardly_any_gain(account)
        ),
        Cause::OtherProcesses => {
            let (others, known) = balance.others.unwrap_or((Amount::exactly(0), Known::Assumed));
            let others = match known {
                Known::Assumed => format!("at least {} (assumed)", bytes::text(others.low)),
                _ => amount(others),
            };
            let own = hardly_any_gain(account);
            format!("other processes had {others} of the GPU: without them there was room{own}")
        }
        Cause::Full => full(account),
        Cause::RoomWasLeft => format!(
            "the GPU counts {free} free, enough for {tried}: it was not full when that was counted"
        ),
        Cause::Cache if account.tried().is_some() || tokens(account).is_some() => format!(
            "what weights and activations leave of the share of the GPU that {} may use is too little for one \
             sequence of that length",
            account.family.speaker
        ),
        Cause::Cache | Cause::SharedMemory | Cause::OnChip => account.family.means.to_owned(),
        Cause::Host => host(account),
        Cause::NotMemory => {
            "the message names another error of CUDA than memory: this is not an out-of-memory error".to_owned()
        }
        Cause::Warning => warning(account),
        Cause::NotTold => not_told(account),
        Cause::Nothing => String::new(),
    }
}

/// What goes on after a refusal that is none.
fn warning(account: &Account) -> String {
    match account.family.id {
        "deepspeed" => account.family.means.to_owned(),
        "llama_cpp" => {
            "memory of the host could not be pinned; llama.cpp goes on with ordinary memory, which is copied more slowly"
                .to_owned()
        }
        "llama_cpp_compute" => {
            "llama.cpp tries again without pipeline parallelism, which wants a smaller compute buffer; if no other \
             message follows, it goes on"
                .to_owned()
        }
        _ => format!(
            "{} says itself that this is no failure: it goes on with an algorithm that wants less",
            account.family.speaker
        ),
    }
}

fn too_large(account: &Account) -> String {
    let figures = &account.figures;
    let tried = account.tried().map_or("?".to_owned(), amount);
    let left = figures.free.or_else(|| figures.limit?.minus(figures.allocated?));
    let Some(free) = left else {
        if account.kind.is_caching_allocator() {
            return format!(
                "one request too large: {tried} was refused while PyTorch had nothing; other programs have the GPU, or \
                 one allocation may not be that long"
            );
        }
        let most = figures.limit.map_or(String::new(), |most| format!(" ({})", amount(most)));
        return format!(
            "one request too large: {tried} is more than the longest buffer that can be made{most}"
        );
    };
    let held = figures
        .allocated
        .map_or(String::new(), |held| format!(" beside {} allocated", amount(held)));
    let share = account
        .tried()
        .zip(figures.capacity)
        .map(|(tried, all)| format!(", {} of the GPU,", share(tried.middle(), all.middle())));
    format!(
        "one request too large: {tried}{} does not fit into the {} that were free{held}",
        share.unwrap_or_default(),
        amount(free)
    )
}

fn full(account: &Account) -> String {
    let figures = &account.figures;
    let free = figures
        .free
        .zip(figures.capacity)
        .map(|(free, all)| format!("{} of {} were free", amount(free), amount(all)));
    let Some(allocated) = figures.allocated else {
        return format!(
            "the GPU was full: {}; the message does not say who held the rest",
            free.unwrap_or_default()
        );
    };
    let who = if account.kind.is_caching_allocator() { "PyTorch" } else { account.family.speaker };
    if let (None, Some(limit)) = (figures.free, figures.limit) {
        return format!(
            "its pool was full: {} of {} were in use",
            amount(allocated),
            amount(limit)
        );
    }
    let cache = figures
        .unallocated
        .map_or(String::new(), |rest| format!(", only {} reserved but unallocated", amount(rest)));
    let counted = figures
        .free
        .zip(account.tried())
        .filter(|(free, tried)| free.at_least(*tried) == Some(true));
    let counted = counted.map_or(
        "",
        |_| "; what is free is counted after the refusal, and not all of it can be had",
    );
    let outside = outside(account).filter(|_| counted.is_empty());
    let outside = outside.map_or(String::new(), |rest| {
        format!("; {} was neither {who}'s tensors nor free", amount(rest))
    });
    format!("the GPU was full: {} allocated by {who}{cache}{counted}{outside}", amount(allocated))
}

/// Where tensors fill nearly the whole GPU, the reason is true of this request only.
fn hardly_any_gain(account: &Account) -> String {
    let figures = &account.figures;
    let Some((held, all)) = figures.allocated.zip(figures.capacity) else { return String::new() };
    if all.high / 10 * 9 < held.low {
        return format!(
            ". PyTorch's tensors fill {} of the GPU: the next request may not fit all the same",
            share(held.middle(), all.middle())
        );
    }
    String::new()
}

/// Processes that hold no more than a context does, beside one that holds far more.
fn contexts(account: &Account) -> Option<String> {
    let small = account.processes.iter().filter(|process| process.memory.high < CONTEXT);
    let (count, largest) = small
        .fold((0, 0), |(count, largest), process| (count + 1, process.memory.high.max(largest)));
    (2 <= count && largest != 0).then(|| {
        format!(
            "{count} processes have no more than {}, as a CUDA context has: other ranks may have touched this GPU \
             before `torch.cuda.set_device`",
            bytes::text(largest)
        )
    })
}

/// No context of PyTorch's takes more, with what it loads at first.
const CONTEXT: u64 = 700 << 20;

/// What is neither free nor in tensors, where that is a quarter of the GPU or more: tensors alone did not fill it.
fn outside(account: &Account) -> Option<Amount> {
    let figures = &account.figures;
    let held = figures.reserved.or(figures.allocated)?;
    let rest = figures.capacity?.minus(figures.free?)?.minus(held)?;
    (figures.capacity?.high / 4 <= rest.low).then_some(rest)
}

/// Host memory: what the family means, and that the GPU has no part in it.
fn host(account: &Account) -> String {
    let means = match account.kind {
        Kind::Host if account.who == "control group" => {
            let limit =
                account.figures.limit.map_or(String::new(), |most| format!(" of {}", amount(most)));
            &format!(
                "the kernel ended a process because its control group, a container or a job, reached its limit{limit}"
            )
        }
        Kind::Host => account.family.means,
        // Servers and frameworks mostly speak of the GPU.
        _ => "the machine, or the limit of its container, has less memory left than that",
    };
    format!("the GPU has no part in this: {means}")
}

fn not_told(account: &Account) -> String {
    let calls = account.traceback.as_ref();
    if account.family.id == "cuda_error" && calls.is_some_and(oom::Traceback::is_through_torch) {
        return "CUDA refused a call of PyTorch and gave no numbers: the GPU was full, or had no room for the context \
                that the first call makes"
            .to_owned();
    }
    match account.sure {
        true => account.family.means.to_owned(),
        false => format!(
            "memory is only one of the reasons for this. If it was: {}",
            account.family.means
        ),
    }
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
        _ => format!("a limit of {most} stopped it, not the GPU, which had {free} free"),
    }
}

fn tensor(tensor: &Tensor) -> String {
    let shape = oom::Shape(tensor.shape.clone());
    match (tensor.bytes(), tensor.element_bytes) {
        (Some(bytes), Some(each)) => {
            format!("{shape} of {} ({each} B each) = {}", tensor.dtype, bytes::text(bytes))
        }
        _ if tensor.dtype.is_empty() => format!("{shape}, of a type that the message does not say"),
        _ => format!("{shape} of {}", tensor.dtype),
    }
}
