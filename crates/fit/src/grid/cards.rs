//! Verdicts on cards: from the runs without a limit where these may give one, else from the cards themselves.
//!
//! Cards of one kind are run from the largest to the smallest, and no further than to the first that runs
//! out of memory: a smaller one would too. Of combinations that a law predicts, the lightest is run; where it
//! runs out of memory, heavier ones of its line are predicted to.

use std::collections::BTreeMap;

use super::{How, Needs, Point};
use crate::trial::{Measured, Memory, Outcome, Runner, Target, Trial, verdict_for};

/// A combination and a card, by their indices.
type Place = (usize, usize);

/// Verdicts of cards of one kind, as they become known.
pub(super) struct Verdicts<'a> {
    pub(super) combinations: &'a [Vec<String>],
    pub(super) needs: &'a Needs,
    /// Combinations that follow one law.
    pub(super) lines: &'a [Vec<usize>],
    pub(super) cards: &'a [Target],
    /// Cards of this kind, by their indices.
    pub(super) of_kind: &'a [usize],
}

impl Verdicts<'_> {
    /// A point for each combination on each card.
    pub(super) fn find<R: Runner>(&self, runner: &mut R) -> Result<Vec<Point>, R::Error> {
        let mut known = self.without_a_limit();
        loop {
            let next = self.next(&known);
            if next.is_empty() {
                break;
            }
            let trial = |&(at, card): &Place| Trial {
                values: self.combinations[at].clone(),
                card,
                memory: Memory::Own,
            };
            let trials: Vec<Trial> = next.iter().map(trial).collect();
            for (place, measured) in next.into_iter().zip(runner.run(&trials)?) {
                self.enter(&mut known, place, measured);
            }
        }
        let places = (0..self.combinations.len())
            .flat_map(|at| self.of_kind.iter().map(move |&card| (at, card)));
        Ok(places.filter_map(|place| known.remove(&place)).collect())
    }

    fn without_a_limit(&self) -> BTreeMap<Place, Point> {
        let mut known = BTreeMap::new();
        for (at, (need, how)) in self.needs.iter().enumerate() {
            for &card in self.of_kind {
                if let Some(outcome) = verdict_for(&self.cards[card], need) {
                    known.insert((at, card), self.point((at, card), outcome, *how));
                }
            }
        }
        known
    }

    fn point(&self, (at, card): Place, outcome: Outcome, how: How) -> Point {
        let Measured { outcome: without, peaks } = &self.needs[at].0;
        let (values, peaks) = (self.combinations[at].clone(), *peaks);
        let was_run = !self.is_predicted(at) && *without != Outcome::NotRun;
        let unlimited = was_run.then_some(peaks);
        Point { values, card, outcome, peaks, unlimited, how, is_cut_short: false }
    }

    /// The largest card without a verdict, of each combination that need not wait for a lighter one.
    fn next(&self, known: &BTreeMap<Place, Point>) -> Vec<Place> {
        let usable = |card: &usize| self.cards[*card].usable_bytes;
        let is_open = |at: usize, card: usize| !known.contains_key(&(at, card));
        let largest = |at: usize| {
            let open = self.of_kind.iter().copied().filter(|&card| is_open(at, card));
            open.max_by_key(usable).map(|card| (at, card))
        };
        let waits = |&(at, card): &Place| {
            self.is_predicted(at)
                && self.line_of(at).any(|other| self.is_lighter(other, at) && is_open(other, card))
        };
        (0..self.combinations.len()).filter_map(largest).filter(|place| !waits(place)).collect()
    }

    /// Takes down what a card said, and what follows from it.
    fn enter(&self, known: &mut BTreeMap<Place, Point>, place: Place, measured: Measured) {
        let mut point = self.point(place, measured.outcome, How::Run);
        if point.outcome.fits() {
            point.peaks = measured.peaks;
        }
        let ran_out = point.outcome == Outcome::DoesNotFit;
        known.insert(place, point);
        if !ran_out {
            return;
        }
        let (at, card) = place;
        let heavier = self
            .line_of(at)
            .filter(|&other| self.is_predicted(other) && self.is_lighter(at, other))
            .map(|other| (other, How::Predicted));
        for (at, how) in std::iter::once((at, How::Implied)).chain(heavier) {
            let is_no_larger =
                |other: &&usize| self.cards[**other].usable_bytes <= self.cards[card].usable_bytes;
            for &card in self.of_kind.iter().filter(is_no_larger) {
                let point = || self.point((at, card), Outcome::DoesNotFit, how);
                known.entry((at, card)).or_insert_with(point);
            }
        }
    }

    fn is_predicted(&self, at: usize) -> bool {
        self.needs[at].1 == How::Predicted
    }

    fn line_of(&self, at: usize) -> impl Iterator<Item = usize> {
        self.lines.iter().filter(move |line| line.contains(&at)).flatten().copied()
    }

    fn is_lighter(&self, one: usize, other: usize) -> bool {
        let allocated = |at: usize| self.needs[at].0.peaks.allocated;
        allocated(one) < allocated(other)
    }
}
