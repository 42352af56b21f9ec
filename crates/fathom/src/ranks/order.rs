//! Which rank runs next, and what is known of those that ran.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use contract::files::Waits;
use study::{Run, Unfinished, Verdict};

use super::attempt::Attempts;
use crate::jobs::Queue;
use crate::outcome;
use crate::screen;
use crate::session;

/// Ranks that ran, that wait and that are shown.
pub(super) struct Order<'a> {
    attempts: &'a Attempts<'a>,
    pub(super) done: BTreeMap<u32, Run>,
    /// Ranks that stopped half-way, with what they gave until then.
    waiting: BTreeMap<u32, (Run, Waits)>,
    /// The first rank that failed.
    failed: Option<u32>,
    shown: BTreeSet<u32>,
}

impl Queue for Order<'_> {
    type Job = u32;
    type Answer = Result<(Run, Option<Waits>)>;

    fn next(&mut self, running: &[&u32]) -> Option<u32> {
        let running: Vec<u32> = running.iter().map(|rank| **rank).collect();
        let has_begun = !(running.is_empty() && self.done.is_empty() && self.waiting.is_empty());
        if has_begun && session::ending().is_some() {
            return None;
        }
        self.whose_letter_came(&running).or_else(|| self.untried(&running))
    }

    fn ended(&mut self, rank: &u32, answer: Self::Answer) -> Result<()> {
        match answer? {
            (run, Some(waits)) => drop(self.waiting.insert(*rank, (run, waits))),
            (run, None) => {
                if run.failure.is_some() {
                    self.failed = Some(self.failed.map_or(*rank, |first| first.min(*rank)));
                }
                self.done.insert(*rank, run);
            }
        }
        let asked = self.attempts.world.ranks.iter();
        let is_next = |rank: &u32| self.done.contains_key(rank) && self.counts(*rank);
        let in_order: Vec<u32> = asked.copied().take_while(is_next).collect();
        in_order.into_iter().try_for_each(|rank| self.show(rank))
    }
}

impl<'a> Order<'a> {
    /// Nothing has run yet.
    pub(super) fn new(attempts: &'a Attempts<'a>) -> Order<'a> {
        let (done, waiting, shown) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Order { attempts, done, waiting, failed: None, shown }
    }

    /// One that can go on. While the sender runs, more letters may come: it is waited for.
    fn whose_letter_came(&mut self, running: &[u32]) -> Option<u32> {
        let letters = self.attempts.letters();
        let is_ready = |(rank, (_, waits)): &(&u32, &(Run, Waits))| {
            let is_sent = letters.join(&waits.letter).exists();
            is_sent && !running.contains(&waits.sender) && self.counts(**rank)
        };
        let ready = self.waiting.iter().find(is_ready).map(|(rank, _)| *rank)?;
        self.waiting.remove(&ready);
        Some(ready)
    }

    /// One that is asked for, else, if nobody else runs, one that is waited for.
    fn untried(&self, running: &[u32]) -> Option<u32> {
        let world = self.attempts.world;
        let is_over = world.ranks.iter().all(|rank| self.done.contains_key(rank));
        if is_over || self.failed.is_some() {
            return None;
        }
        let tried = self.done.keys().chain(self.waiting.keys()).chain(running);
        let tried: BTreeSet<u32> = tried.copied().collect();
        let is_new = |rank: &u32| !tried.contains(rank) && *rank < world.size;
        // Who ran for another's sake shows that ranks wait: then they run one after the other.
        let is_free = running.is_empty() || self.waiting.is_empty();
        if let Some(rank) = world.ranks.iter().copied().find(|rank| is_free && is_new(rank)) {
            return Some(rank);
        }
        let mut waits = self.waiting.values().map(|(_, waits)| waits);
        let waits = waits.find(|waits| running.is_empty() && is_new(&waits.sender))?;
        let Waits { rank, sender, call, .. } = waits;
        if !self.attempts.is_quiet {
            screen::say(&format!(
                "fathom: rank {rank} needs data of rank {sender} ({call}): rank {sender} runs too"
            ));
        }
        Some(*sender)
    }

    /// Whether a rank would have run, had they run one by one. A signal is no failure: what ran then counts.
    fn counts(&self, rank: u32) -> bool {
        let asked = &self.attempts.world.ranks;
        let failed = self.failed.filter(|first| asked.contains(first));
        let first = failed.filter(|_| session::ending().is_none());
        first.is_none_or(|first| rank <= first || !asked.contains(&rank))
    }

    /// When nothing runs any more: what is left is settled and shown.
    pub(super) fn finish(&mut self) -> Result<()> {
        let all: Vec<Waits> = self.waiting.values().map(|(_, waits)| waits.clone()).collect();
        // Who still waits waits for ever, unless a signal keeps the sender from running.
        for (rank, (run, waits)) in std::mem::take(&mut self.waiting) {
            let run = match session::ending() {
                Some(signal) => interrupted(run, signal),
                None => failed(run, &waits, &all),
            };
            self.done.insert(rank, run);
        }
        let left_out: Vec<u32> =
            self.done.keys().copied().filter(|rank| !self.counts(*rank)).collect();
        left_out.iter().for_each(|rank| drop(self.done.remove(rank)));
        let rest: Vec<u32> = self.done.keys().copied().collect();
        rest.into_iter().try_for_each(|rank| self.show(rank))
    }

    /// Shows what a rank printed, once.
    fn show(&mut self, rank: u32) -> Result<()> {
        match self.attempts.are_apart() && self.shown.insert(rank) {
            true => self.attempts.show(rank),
            false => Ok(()),
        }
    }
}

/// A rank that might have gone on, had not a signal ended everything.
pub(super) fn interrupted(mut run: Run, signal: i32) -> Run {
    let unfinished = Unfinished { signal: Some(session::name(signal)), seconds: run.wall_seconds };
    (run.verdict, run.exit_code) = (unfinished.verdict(), outcome::UNFINISHED);
    run.failure = Some(unfinished.to_string());
    run.unfinished = Some(unfinished);
    run
}

/// A rank that waits for what nobody sends.
fn failed(mut run: Run, waits: &Waits, all: &[Waits]) -> Run {
    let Waits { rank, sender, call, .. } = waits;
    let mut why = format!("rank {rank} waits in {call} for data of rank {sender}");
    why += &match all.iter().find(|other| other.rank == *sender) {
        Some(other) => format!(
            ", which waits for rank {} in {}: only a world in which both run at once can answer that",
            other.sender, other.call
        ),
        None => ", which did not send it".to_owned(),
    };
    run.verdict = Verdict::ScriptFailed;
    run.exit_code = 3;
    run.failure = Some(why);
    run
}
