//! Which advice can help: of what the message says, and of what its numbers say.

use crate::account::{Account, Advised, Figures, Kind};
use crate::amount::Amount;
use crate::balance::Balance;
use recording::Known;

/// What could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Use what is reserved and not allocated: `expandable_segments:True`, before 2.2 `max_split_size_mb`.
    UseReserved,
    /// End the other processes of the card.
    StopOthers,
    /// Raise PyTorch's own limit.
    RaiseLimit,
    /// Empty the cache: PyTorch has done so before it raised the error.
    EmptyCache,
    /// Ask for less: what was tried is more than the card has.
    AskForLess,
}

impl Remedy {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Remedy::UseReserved => "use_reserved",
            Remedy::StopOthers => "stop_other_processes",
            Remedy::RaiseLimit => "raise_limit",
            Remedy::EmptyCache => "empty_cache",
            Remedy::AskForLess => "ask_for_less",
        }
    }
}

/// Whether a remedy helps this request, what helps first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Helps {
    /// There can be enough then.
    Can,
    /// The text rounds too much to tell.
    Open,
    /// There is not enough even then.
    Cannot,
    /// What was free was enough by itself: the reason is another one.
    Beside,
}

impl Helps {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Helps::Can => "can_help",
            Helps::Open => "cannot_tell",
            Helps::Cannot => "cannot_help",
            Helps::Beside => "not_the_reason",
        }
    }
}

/// One piece of advice, judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What could be done.
    pub remedy: Remedy,
    /// The message itself advises it, in these words.
    pub said: Option<Advised>,
    /// Whether it helps.
    pub helps: Helps,
    /// The most that would be free for the request then.
    pub reach: Option<Amount>,
    /// What is missing even then, or left over.
    pub gap: Option<Amount>,
    /// How the numbers behind it are known.
    pub known: Known,
}

impl Advice {
    /// What helps comes first, and of two that help the one that leaves more.
    fn rank(&self) -> (Helps, std::cmp::Reverse<u64>) {
        let gap = self.gap.filter(|_| self.helps == Helps::Can);
        (self.helps, std::cmp::Reverse(gap.map_or(0, Amount::middle)))
    }
}

/// Segments that grow take and give whole pages of this length: smaller pieces gain nothing.
const PAGE: u64 = 2 << 20;

/// Judges what the message advises, and what its numbers allow.
pub fn advise(account: &Account, balance: &Balance) -> Vec<Advice> {
    let Some(tried) = account.tried().filter(|_| account.kind.is_refusal()) else {
        return Vec::new();
    };
    let figures = &account.figures;
    let said =
        |words: &[Advised]| account.advises.iter().copied().find(|said| words.contains(said));
    let mut list = Vec::new();
    if figures.capacity.is_some_and(|capacity| capacity.at_least(tried) == Some(false)) {
        let gap = figures.capacity.and_then(|capacity| tried.minus(capacity));
        let (remedy, helps, known) = (Remedy::AskForLess, Helps::Can, Known::Measured);
        list.push(Advice { remedy, said: None, helps, reach: figures.capacity, gap, known });
    }
    let judge = Judge::of(account, tried);
    let split = said(&[Advised::ExpandableSegments, Advised::MaxSplitSize]);
    let is_of_use = figures.unallocated.is_some_and(|rest| PAGE <= rest.high)
        && matches!(account.kind, Kind::Cuda | Kind::Hip);
    if split.is_some() || is_of_use && !judge.had_room() {
        // Pages that are unmapped go back to the card, and below the limit alike.
        let room = judge.room.or_else(|| judge.at_most(figures));
        let reach = figures.unallocated.and_then(|rest| Some(room?.plus(rest)));
        list.push(judge.advice(Remedy::UseReserved, split, reach, Known::Measured));
    }
    if let Some(empty) = said(&[Advised::EmptyCache]) {
        // `XPUCachingAllocator.cpp` releases its cache before it raises the error: what can be had so is free.
        let advice = judge.advice(Remedy::EmptyCache, Some(empty), figures.free, Known::Measured);
        list.push(Advice { helps: Helps::Cannot, gap: None, ..advice });
    }
    if let Some((others, known)) = balance.others.filter(|_| !judge.had_room()) {
        let reach = figures.free.map(|free| judge.below_limit(free.plus(others)));
        list.push(judge.advice(Remedy::StopOthers, None, reach, known));
    }
    // A limit that leaves enough room was not what stopped it.
    let can_be_limit = judge.headroom.is_none_or(|room| room.at_least(tried) != Some(true));
    let has_limit = account.kind.is_caching_allocator() || account.kind == Kind::Mps;
    if has_limit && account.cause.is_none() && figures.limit.is_some() && can_be_limit {
        let watermark = said(&[Advised::Watermark]);
        // On a Mac the memory of the machine is the end, which the text does not say.
        let reach = if account.kind == Kind::Mps { None } else { figures.free };
        let advice = Judge { room: None, ..judge }.advice(
            Remedy::RaiseLimit,
            watermark,
            reach,
            Known::Measured,
        );
        list.push(advice);
    }
    list.sort_by_key(Advice::rank);
    list
}

/// What advice is measured by.
#[derive(Clone, Copy)]
struct Judge {
    tried: Amount,
    /// What PyTorch's limit leaves it; `None` without a limit.
    headroom: Option<Amount>,
    /// What could be had at once: free, and below the limit.
    room: Option<Amount>,
}

impl Judge {
    fn of(account: &Account, tried: Amount) -> Judge {
        let figures = &account.figures;
        let limit = figures.limit.filter(|_| account.kind.is_caching_allocator());
        let reserved = figures.reserved.unwrap_or(Amount::exactly(0));
        let headroom = limit.map(|limit| limit.minus(reserved).unwrap_or(Amount::exactly(0)));
        let judge = Judge { tried, headroom, room: None };
        Judge { room: figures.free.map(|free| judge.below_limit(free)), ..judge }
    }

    /// What was free was enough by itself.
    fn had_room(&self) -> bool {
        self.room.is_some_and(|room| room.at_least(self.tried) == Some(true))
    }

    /// What may have been free, where the message does not say: all that PyTorch does not have.
    fn at_most(&self, figures: &Figures) -> Option<Amount> {
        let rest = figures.capacity?.minus(figures.reserved?)?;
        Some(self.below_limit(Amount { low: 0, ..rest }))
    }

    fn below_limit(&self, amount: Amount) -> Amount {
        self.headroom.map_or(amount, |headroom| amount.min(headroom))
    }

    fn advice(
        &self,
        remedy: Remedy,
        said: Option<Advised>,
        reach: Option<Amount>,
        known: Known,
    ) -> Advice {
        let helps = match reach.map(|reach| reach.at_least(self.tried)) {
            _ if self.had_room() => Helps::Beside,
            Some(Some(true)) => Helps::Can,
            Some(Some(false)) => Helps::Cannot,
            _ => Helps::Open,
        };
        let gap = reach.and_then(|reach| match helps {
            Helps::Can | Helps::Beside => reach.minus(self.tried),
            _ => self.tried.minus(reach),
        });
        Advice { remedy, said, helps, reach, gap, known }
    }
}
