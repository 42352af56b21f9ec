//! One account weighed: what was free, whose the rest was, and what therefore was the reason.

use recording::Known;

use crate::account::{Account, Kind};
use crate::amount::Amount;
pub use crate::cause::Cause;
use crate::cause::cause;
use crate::families::Memory;

/// One row of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is, as JSON names it.
    pub name: &'static str,
    pub amount: Amount,
    /// How that is known.
    pub known: Known,
    /// 0 for a total, 1 for its parts, 2 for parts of these.
    pub depth: u8,
}

/// Rows: a total, and the parts that sum to it.
pub type Ledger = Vec<Row>;

/// An account weighed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    pub cause: Cause,
    /// What was missing; `None` if the card had enough, or the text does not say.
    pub short: Option<Amount>,
    /// The card, or what the text is about, down to its parts.
    pub ledger: Ledger,
    /// What other processes have of the card.
    pub others: Option<(Amount, Known)>,
    /// Index of the listed process that must be this one: inside a container the numbers differ.
    pub this_process: Option<usize>,
    /// PyTorch has more than the card: a driver lent it memory of the host.
    pub spilled: bool,
}

/// What is granted to a process outside of PyTorch's allocator (context, kernels of libraries, NCCL's
/// buffers) where the message does not count it. Assumed, and generous: the largest context of the
/// catalogue is 0.6 GiB. A process can have more: one of `tests/oom` has 8 GiB.
pub const MOST_OUTSIDE: u64 = 2 << 30;

/// Less than this, listed by nobody, is taken to be the driver's: it keeps up to 140 MiB of the cards in
/// `tests/oom` whose processes are all listed. Assumed.
const LEAST_PROCESS: u64 = 256 << 20;

/// Whose the memory was, and the reason that follows.
pub fn weigh(account: &Account) -> Balance {
    let figures = &account.figures;
    let mut balance = Balance {
        cause: Cause::Nothing,
        short: figures.tried.zip(figures.free).and_then(|(tried, free)| missing(tried, free)),
        ledger: Ledger::new(),
        others: None,
        this_process: None,
        spilled: false,
    };
    match account.kind {
        Kind::Cuda | Kind::Hip | Kind::Xpu => on_card(account, &mut balance),
        Kind::Mps => on_apple(account, &mut balance),
        Kind::Smi => in_table(account, &mut balance),
        Kind::Summary => in_summary(account, &mut balance),
        _ if account.memory == Memory::Host => in_table(account, &mut balance),
        _ => in_pool(account, &mut balance),
    }
    balance.cause = cause(account, &balance);
    balance
}

/// What of `wanted` is not there; `None` if all may be.
fn missing(wanted: Amount, there: Amount) -> Option<Amount> {
    match there.at_least(wanted) {
        Some(false) => wanted.minus(there),
        _ => None,
    }
}

fn row(name: &'static str, amount: Amount, depth: u8) -> Row {
    Row { name, amount, known: Known::Measured, depth }
}

fn on_card(account: &Account, balance: &mut Balance) {
    let figures = &account.figures;
    let ledger = &mut balance.ledger;
    ledger.extend(figures.capacity.map(|capacity| row("card", capacity, 0)));
    ledger.extend(figures.free.map(|free| row("free", free, 1)));
    ledger.extend(figures.allocated.map(|allocated| row("allocated", allocated, 1)));
    ledger.extend(figures.private_pools.map(|private| row("private_pools", private, 2)));
    ledger.extend(figures.unallocated.map(|rest| row("reserved_unallocated", rest, 1)));
    balance.spilled = match (figures.reserved.or(figures.allocated), figures.capacity) {
        (Some(reserved), Some(capacity)) => capacity.at_least(reserved) == Some(false),
        _ => false,
    };
    let reserved = figures.reserved.unwrap_or(Amount::exactly(0));
    let this = figures.this_process.or_else(|| {
        balance.this_process = own(account, reserved);
        let own = balance.this_process.and_then(|index| account.processes.get(index));
        own.map(|process| process.memory)
    });
    if let Some(this) = this {
        let outside = this.minus(reserved);
        ledger.extend(outside.map(|outside| row("outside_pytorch", outside, 1)));
    }
    balance.others = others(account, this, reserved, balance.this_process);
    if let Some((others, known)) = balance.others {
        ledger.push(Row { known, ..row("other_processes", others, 1) });
    }
    let is_listed = account.processes.len() != usize::from(balance.this_process.is_some());
    let name = match (this, balance.others) {
        // What was granted to this process, where others were found by that.
        (None, Some((_, Known::Assumed))) => {
            let granted = Amount { low: 0, high: MOST_OUTSIDE };
            ledger.push(Row { known: Known::Assumed, ..row("outside_pytorch", granted, 1) });
            return;
        }
        // The others are what remains: nothing does now.
        (Some(_), Some(_)) if !is_listed => return,
        // What is not told may be free as well.
        (None, None) if figures.free.is_none() => "not_told",
        (None, None) => "outside_or_others",
        _ => "unlisted",
    };
    let name = if figures.reserved.is_none() { "not_in_tensors" } else { name };
    let is_all = figures.reserved.is_some() || figures.allocated.and(figures.free).is_some();
    let rest = rest(ledger).filter(|rest| is_all && rest.high != 0);
    ledger.extend(rest.map(|rest| row(name, rest, 1)));
}

/// The total less its parts.
fn rest(ledger: &Ledger) -> Option<Amount> {
    let (total, parts) = ledger.split_first().filter(|(total, _)| total.depth == 0)?;
    let parts = parts.iter().filter(|row| row.depth == 1).map(|row| row.amount);
    total.amount.minus(parts.reduce(Amount::plus)?)
}

/// The one listed process that has at least what this one has reserved.
fn own(account: &Account, reserved: Amount) -> Option<usize> {
    let can_be = |memory: Amount| memory.at_least(reserved) != Some(false);
    let mut fitting =
        account.processes.iter().enumerate().filter(|(_, process)| can_be(process.memory));
    let (index, process) = fitting.next()?;
    let outside = process.memory.minus(reserved)?;
    // Beside what this one has reserved, the card may have no room for the listed one to be another.
    let figures = &account.figures;
    let used = figures.capacity.zip(figures.free).and_then(|(all, free)| all.minus(free));
    let cannot_be_another =
        used.is_some_and(|used| used.at_least(process.memory.plus(reserved)) == Some(false));
    let is_alone = fitting.next().is_none();
    (is_alone && (cannot_be_another || outside.low <= MOST_OUTSIDE)).then_some(index)
}

/// What other processes have: listed, else what remains, else what is too much for this one.
fn others(
    account: &Account,
    this: Option<Amount>,
    reserved: Amount,
    own: Option<usize>,
) -> Option<(Amount, Known)> {
    let listed = account.processes.iter().enumerate().filter(|(index, _)| Some(*index) != own);
    let listed: Vec<Amount> = listed.map(|(_, process)| process.memory).collect();
    if let Some(sum) = listed.into_iter().reduce(Amount::plus) {
        return Some((sum, Known::Measured));
    }
    let used = account.figures.capacity?.minus(account.figures.free?)?;
    match this {
        Some(this) => {
            let rest = used.minus(this).filter(|rest| LEAST_PROCESS <= rest.low)?;
            Some((rest, Known::Measured))
        }
        None => {
            let outside = used.minus(account.figures.reserved.map(|_| reserved)?)?;
            let too_much = outside.low.checked_sub(MOST_OUTSIDE).filter(|bytes| *bytes != 0)?;
            Some((Amount { low: too_much, high: outside.high }, Known::Assumed))
        }
    }
}

fn on_apple(account: &Account, balance: &mut Balance) {
    let figures = &account.figures;
    let is_of_one = account.cause == Some(Cause::RequestTooLarge);
    let limit = if is_of_one { "longest_buffer" } else { "limit" };
    let parts = [
        (limit, figures.limit, 0),
        ("allocated", figures.allocated, 1),
        ("other", figures.other, 1),
    ];
    let ledger = &mut balance.ledger;
    ledger.extend(
        parts.iter().filter_map(|(name, amount, depth)| Some(row(name, (*amount)?, *depth))),
    );
    let left = || figures.limit?.minus(figures.allocated?.plus(figures.other?));
    if let Some(left) = left() {
        ledger.push(row("left", left, 1));
        balance.short = figures.tried.and_then(|tried| missing(tried, left));
    }
}

/// Whatever others say of their pool and of the card.
fn in_pool(account: &Account, balance: &mut Balance) {
    let figures = &account.figures;
    if account.cause == Some(Cause::OtherProcesses) {
        let others = figures.capacity.zip(figures.free).and_then(|(all, free)| all.minus(free));
        balance.others = others.map(|others| (others, Known::Measured));
    }
    if account.cause == Some(Cause::Cache) || account.memory == Memory::OnChip {
        return;
    }
    let left = figures.free.or_else(|| figures.limit?.minus(figures.allocated?));
    balance.short = left.zip(account.tried()).and_then(|(left, tried)| missing(tried, left));
    // Of a pool that is not told there is nothing to sum up.
    if account.memory == Memory::NotTold {
        return;
    }
    let total = match (figures.capacity, figures.limit) {
        (Some(capacity), _) => Some(("card", capacity)),
        (None, limit) => limit.map(|limit| ("pool", limit)),
    };
    let ledger = &mut balance.ledger;
    ledger.extend(total.map(|(name, amount)| row(name, amount, 0)));
    ledger.extend(figures.free.map(|free| row("free", free, 1)));
    ledger.extend(figures.allocated.map(|allocated| row("held", allocated, 1)));
    if let (None, Some(left)) = (figures.free, left) {
        ledger.push(row("left", left, 1));
    }
}

fn in_table(account: &Account, balance: &mut Balance) {
    let figures = &account.figures;
    let ledger = &mut balance.ledger;
    ledger.extend(figures.capacity.map(|capacity| row("card", capacity, 0)));
    ledger.extend(figures.free.map(|free| row("free", free, 1)));
    ledger.extend(figures.used.map(|used| row("used", used, 1)));
    let listed = account.processes.iter().map(|process| process.memory).reduce(Amount::plus);
    if let Some((listed, used)) = listed.zip(figures.used) {
        ledger.push(row("processes", listed, 2));
        ledger.extend(used.minus(listed).map(|rest| row("no_process", rest, 2)));
    }
}

fn in_summary(account: &Account, balance: &mut Balance) {
    let figures = &account.figures;
    let parts = [
        ("reserved", figures.reserved, 0),
        ("allocated", figures.allocated, 1),
        ("reserved_unallocated", figures.unallocated, 1),
        ("peak_reserved", figures.peak_reserved, 0),
        ("peak_allocated", figures.peak_allocated, 1),
    ];
    let rows = parts.iter().filter_map(|(name, amount, depth)| Some(row(name, (*amount)?, *depth)));
    balance.ledger.extend(rows);
}
