//! Which advice can help: of what the message says, and of what its numbers say.

use crate::account::{Account, Advised, Kind};
use crate::amount::Amount;
use crate::balance::{Balance, Known};

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

/// Whether a remedy helps this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helps {
    /// There can be enough then.
    Can,
    /// The text rounds too much to tell.
    Open,
    /// There is not enough even then.
    Cannot,
}

impl Helps {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Helps::Can => "can_help",
            Helps::Open => "cannot_tell",
            Helps::Cannot => "cannot_help",
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

/// Judges what the message advises, and what its numbers allow.
pub fn advise(account: &Account, balance: &Balance) -> Vec<Advice> {
    let Some(tried) = account.tried().filter(|_| account.kind.is_refusal()) else {
        return Vec::new();
    };
    let figures = &account.figures;
    let mut list = Vec::new();
    if figures.capacity.is_some_and(|capacity| capacity.at_least(tried) == Some(false)) {
        let gap = figures.capacity.and_then(|capacity| tried.minus(capacity));
        let (remedy, helps, known) = (Remedy::AskForLess, Helps::Can, Known::Measured);
        list.push(Advice { remedy, said: None, helps, reach: figures.capacity, gap, known });
    }
    let said =
        |words: &[Advised]| account.advises.iter().copied().find(|said| words.contains(said));
    let judged = |remedy, said, reach: Option<Amount>, known| {
        let helps = match reach.map(|reach| reach.at_least(tried)) {
            Some(Some(true)) => Helps::Can,
            Some(Some(false)) => Helps::Cannot,
            _ => Helps::Open,
        };
        let gap = reach.and_then(|reach| match helps {
            Helps::Can => reach.minus(tried),
            _ => tried.minus(reach),
        });
        Advice { remedy, said, helps, reach, gap, known }
    };
    let free = figures.free;
    let with = |more: Option<Amount>| free.zip(more).map(|(free, more)| free.plus(more));
    let split = said(&[Advised::ExpandableSegments, Advised::MaxSplitSize]);
    if split.is_some() || figures.unallocated.is_some() && account.kind.is_caching_allocator() {
        list.push(judged(Remedy::UseReserved, split, with(figures.unallocated), Known::Measured));
    }
    if let Some(empty) = said(&[Advised::EmptyCache]) {
        // The cache is emptied before the error is raised: what can be had so is free already.
        let judged = judged(Remedy::EmptyCache, Some(empty), free, Known::Measured);
        list.push(Advice { helps: Helps::Cannot, gap: None, ..judged });
    }
    if let Some((others, known)) = balance.others.filter(|(others, _)| others.high != 0) {
        list.push(judged(Remedy::StopOthers, None, with(Some(others)), known));
    }
    if figures.limit.is_some() {
        let watermark = said(&[Advised::Watermark]);
        // On a Mac the memory of the machine is the end, which the text does not say.
        let reach = if account.kind == Kind::Mps { None } else { free };
        list.push(judged(Remedy::RaiseLimit, watermark, reach, Known::Measured));
    }
    list
}
