//! The reason why memory ran out, from the words and the numbers of a message.

use crate::account::{Account, Kind};
use crate::amount::Amount;
use crate::balance::Balance;
use crate::families::Memory;

/// The reason why memory ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// More was asked for than the card has.
    LargerThanCard,
    /// One request was too large: there was room, but not that much.
    RequestTooLarge,
    /// A limit stopped it, not the card.
    Limit,
    /// What PyTorch had reserved and not allocated would have been enough.
    Pieces,
    /// Without the other processes there would have been room.
    OtherProcesses,
    /// Tensors filled the card.
    Full,
    /// The card says it had room.
    RoomWasLeft,
    /// The message has too few numbers to tell.
    NotTold,
    /// The share for the KV cache of a server does not hold it.
    Cache,
    /// It was memory of the host.
    Host,
    /// It was `/dev/shm` of the host.
    SharedMemory,
    /// It was memory inside of a multiprocessor.
    OnChip,
    /// The message names another reason itself.
    NotMemory,
    /// The message says itself that nothing failed.
    Warning,
    /// Nothing was refused: a table.
    Nothing,
}

impl Cause {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Cause::LargerThanCard => "larger_than_card",
            Cause::RequestTooLarge => "request_too_large",
            Cause::Limit => "limit",
            Cause::Pieces => "fragmentation",
            Cause::OtherProcesses => "other_processes",
            Cause::Full => "full",
            Cause::RoomWasLeft => "room_was_left",
            Cause::NotTold => "not_told",
            Cause::Cache => "kv_cache",
            Cause::Host => "host_memory",
            Cause::SharedMemory => "shared_memory",
            Cause::OnChip => "on_chip_memory",
            Cause::NotMemory => "not_memory",
            Cause::Warning => "warning",
            Cause::Nothing => "nothing_refused",
        }
    }
}

/// A card of which less than this part is free is full: the count is taken after the refusal, and not all that
/// is counted can be handed out.
const HARDLY_FREE: u64 = 33;

/// Of a card that tensors, libraries and others fill up to this part, in percent, fragments are not the reason.
const OCCUPIED: u64 = 97;
/// The same for PyTorch's tensors alone.
const ALLOCATED: u64 = 95;

/// One request is too large, not the sum of all, if it is this part of the card, or this part is free.
const LARGE: u64 = 4;
/// No card has that much: 8 TiB, some thirty times the largest there is.
const NO_CARD: u64 = 1 << 43;
const ROOM: u64 = 10;

/// The words first, where they say it; then the numbers.
pub(crate) fn cause(account: &Account, balance: &Balance) -> Cause {
    if let Some(said) = account.cause {
        return said;
    }
    if !account.kind.is_refusal() {
        return Cause::Nothing;
    }
    match account.memory {
        Memory::Host => Cause::Host,
        Memory::Shared => Cause::SharedMemory,
        Memory::OnChip => Cause::OnChip,
        _ if account.kind.is_caching_allocator() || account.kind == Kind::Mps => {
            by_numbers(account, balance)
        }
        _ => elsewhere(account),
    }
}

/// What numbers of other allocators say: a card, or a pool with a limit.
fn elsewhere(account: &Account) -> Cause {
    let figures = &account.figures;
    let held = figures.allocated;
    let left = figures.free.or_else(|| figures.limit?.minus(held?));
    let whole = figures.capacity.or(figures.limit).or_else(|| Some(held?.plus(figures.free?)));
    let Some((left, whole)) = left.zip(whole) else {
        let is_larger = account.tried().is_some_and(|tried| {
            let than_card = |all: Amount| all.at_least(tried) == Some(false);
            figures.capacity.map_or(NO_CARD <= tried.low, than_card)
        });
        return if is_larger { Cause::LargerThanCard } else { Cause::NotTold };
    };
    let Some(tried) = account.tried() else {
        // The pool itself says how full it is.
        return if left.high < whole.low / HARDLY_FREE { Cause::Full } else { Cause::NotTold };
    };
    match () {
        () if whole.at_least(tried) == Some(false) => Cause::LargerThanCard,
        () if left.high < whole.low / HARDLY_FREE => Cause::Full,
        () if left.at_least(tried) == Some(true) && figures.limit.is_some() => Cause::Pieces,
        () if left.at_least(tried) == Some(true) => Cause::RoomWasLeft,
        () if is_large(tried, Some(left), whole) => Cause::RequestTooLarge,
        () => Cause::Full,
    }
}

fn is_large(tried: Amount, left: Option<Amount>, whole: Amount) -> bool {
    whole.high / LARGE <= tried.low || left.is_some_and(|left| whole.high / ROOM <= left.low)
}

/// What is tried is not told, but how much of a limit was left.
fn without_size(account: &Account) -> Cause {
    let figures = &account.figures;
    let left = || figures.limit?.minus(figures.allocated?.plus(figures.other?));
    let hardly =
        left().zip(figures.limit).is_some_and(|(left, all)| left.high < all.low / HARDLY_FREE);
    if hardly { Cause::Limit } else { Cause::NotTold }
}

fn by_numbers(account: &Account, balance: &Balance) -> Cause {
    let figures = &account.figures;
    let is_hardly_free = figures
        .capacity
        .zip(figures.free)
        .is_some_and(|(all, free)| free.high < all.low / HARDLY_FREE);
    // Whatever was asked for, a card without room had none for it.
    let least =
        || figures.free.filter(|_| is_hardly_free).map(|free| Amount::exactly(free.high + 1));
    let Some(tried) = account.tried().or_else(least) else { return without_size(account) };
    let is_larger = |card: Amount| card.at_least(tried) == Some(false);
    if figures.capacity.map_or(NO_CARD <= tried.low, is_larger) {
        return Cause::LargerThanCard;
    }
    let Some(free) = figures.free else {
        let is_large = figures.capacity.is_some_and(|all| is_large(tried, None, all));
        let is_filled = figures.capacity.zip(figures.allocated).is_some_and(|(all, held)| {
            u128::from(all.high) * u128::from(ALLOCATED) <= u128::from(held.low) * 100
        });
        return match () {
            () if is_filled => Cause::Full,
            () if figures.limit.is_some() => Cause::Limit,
            // A program that holds nothing yet.
            () if is_large && figures.allocated == Some(Amount::exactly(0)) => {
                Cause::RequestTooLarge
            }
            () => Cause::NotTold,
        };
    };
    let reserved = figures.reserved.unwrap_or(Amount::exactly(0));
    let has_room = free.at_least(tried) != Some(false);
    if figures.limit.is_some_and(|limit| limit.at_least(reserved.plus(tried)) != Some(true))
        && has_room
    {
        return Cause::Limit;
    }
    // Blame needs certainty: what the text rounds away is not enough for it.
    let enough = |more: Option<Amount>| {
        more.is_some_and(|more| free.plus(more).at_least(tried) == Some(true))
    };
    let others = balance.others.map(|(others, _)| others);
    let others_have_more = others.is_some_and(|others| {
        figures.unallocated.is_none_or(|unallocated| unallocated.high < others.low)
    });
    let is_free_enough = free.at_least(tried) == Some(true);
    match () {
        () if is_free_enough && !is_hardly_free => Cause::RoomWasLeft,
        () if enough(others) && others_have_more => Cause::OtherProcesses,
        () if !is_free_enough && enough(figures.unallocated) && !is_occupied(account) => {
            Cause::Pieces
        }
        () if !is_free_enough && enough(others) && !is_occupied(account) => Cause::OtherProcesses,
        () if is_hardly_free => Cause::Full,
        () if figures.allocated.is_none() => unknown_holder(account, free),
        () if figures.capacity.is_some_and(|all| is_large(tried, Some(free), all)) => {
            Cause::RequestTooLarge
        }
        () => Cause::Full,
    }
}

/// Full all the same, where hardly anything was free; else the text does not tell.
fn unknown_holder(account: &Account, free: Amount) -> Cause {
    let is_full = account.figures.capacity.is_some_and(|all| free.high < all.low / ROOM);
    if is_full { Cause::Full } else { Cause::NotTold }
}

/// What is not in PyTorch's cache and not free takes nearly the whole card.
fn is_occupied(account: &Account) -> bool {
    let figures = &account.figures;
    let Some(all) = figures.capacity.map(Amount::middle) else { return false };
    let part = |amount: Option<Amount>| amount.map_or(0, Amount::middle);
    let occupied = all.saturating_sub(part(figures.free) + part(figures.unallocated));
    let is_over = |amount: u64, percent: u64| all / 100 * percent <= amount;
    is_over(occupied, OCCUPIED) || is_over(part(figures.allocated), ALLOCATED)
}
