//! The largest value of a knob that fits a card.
//!
//! Between the largest value that fits and the smallest above it that does not, laws through the runs so far
//! say where to look, in turns with thirds of what is left. Runs without a limit give the laws, and a verdict
//! on every card that has room for them; all other verdicts are the card's own.

use std::collections::BTreeMap;

use crate::grid::{How, Point};
use crate::law::Law;
use crate::trial::{Measured, Memory, Outcome, Runner, Target, Trial, verdict_for};
use anatomy::Peaks;

/// Near the limit what fits may change from value to value, as the libraries' work areas do: so many values
/// above the largest that fits are run.
const ONE_BY_ONE: i64 = 6;

/// The nearest runs that a law goes through.
const NEAR: usize = 4;

/// A range of whole numbers, both ends included.
pub type Range = (i64, i64);

/// The answer for one card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Largest {
    /// The card, by its index.
    pub card: usize,
    /// `None`: even the smallest value does not fit.
    pub value: Option<i64>,
    /// Whether that rests on what was assumed of values that nobody knows.
    pub is_assumed: bool,
    /// Peaks at that value.
    pub peaks: Peaks,
    /// Whether the range ended before the memory did.
    pub at_end_of_range: bool,
    /// Why a larger value was not possible, if not for memory.
    pub failure: Option<String>,
    /// Whether the search was ended before it was over: a larger value may fit.
    pub unfinished: bool,
}

/// Runs of one knob on cards of one kind.
pub struct Search<'a, R: Runner> {
    runner: &'a mut R,
    /// How a value of the knob becomes values of all knobs.
    values: &'a dyn Fn(i64) -> Vec<String>,
    range: Range,
    /// Without a limit.
    needs: BTreeMap<i64, Measured>,
    /// On a card itself.
    on_card: BTreeMap<(usize, i64), Measured>,
}

impl<'a, R: Runner> Search<'a, R> {
    /// A search over a range; `values` gives all knobs' values for one of this knob.
    pub fn new(
        runner: &'a mut R,
        range: Range,
        values: &'a dyn Fn(i64) -> Vec<String>,
    ) -> Search<'a, R> {
        Search { runner, values, range, needs: BTreeMap::new(), on_card: BTreeMap::new() }
    }

    /// The largest value for one card. Cards asked about one after the other must be of one kind.
    pub fn largest(&mut self, index: usize, card: &Target) -> Result<Largest, R::Error> {
        let (low, high) = self.range;
        self.need(index, &[low, (low + 3).min(high), (low + 7).min(high)])?;
        let failed = |outcome: Option<Outcome>| match outcome {
            Some(Outcome::Failed(why)) => Some(why),
            _ => None,
        };
        let value = match failed(self.outcome(index, card, low)) {
            None => self.search(index, card)?,
            Some(_) => low - 1,
        };
        let own = self.on_card.get(&(index, value)).or_else(|| self.needs.get(&value));
        Ok(Largest {
            card: index,
            value: (low <= value).then_some(value),
            is_assumed: self.outcome(index, card, value) == Some(Outcome::FitsIf),
            peaks: own.map_or_else(Peaks::default, |measured| measured.peaks),
            at_end_of_range: high == value,
            failure: failed(self.outcome(index, card, value + 1)),
            unfinished: self.is_unfinished(index),
        })
    }

    /// Whether something that this card's answer rests on was not run.
    fn is_unfinished(&self, index: usize) -> bool {
        let on_card = self.on_card.iter().filter(|((card, _), _)| *card == index);
        let mut all = self.needs.values().chain(on_card.map(|(_, measured)| measured));
        all.any(|measured| measured.outcome == Outcome::NotRun)
    }

    /// What was run, for these cards; where only the cards were run and ran out, what is needed is not known.
    pub fn points(&self, cards: &[(usize, &Target)]) -> Vec<Point> {
        let of_cards = self.on_card.keys().map(|(_, x)| x);
        let mut all: Vec<i64> = self.needs.keys().chain(of_cards).copied().collect();
        all.sort_unstable();
        all.dedup();
        let mut points = Vec::new();
        for x in all {
            for &(index, card) in cards {
                let Some(outcome) = self.outcome(index, card, x) else { continue };
                let was_run = |measured: &&Measured| measured.outcome != Outcome::NotRun;
                let need = self.needs.get(&x).filter(was_run);
                let own = self.on_card.get(&(index, x));
                let is_own = outcome.fits() || need.is_none();
                let seen = own.filter(|_| is_own).or(need);
                points.push(Point {
                    values: (self.values)(x),
                    card: index,
                    is_cut_short: outcome == Outcome::DoesNotFit && need.is_none(),
                    outcome,
                    peaks: seen.map_or_else(Peaks::default, |measured| measured.peaks),
                    unlimited: need.map(|need| need.peaks),
                    how: How::Run,
                });
            }
        }
        points
    }

    /// What is known about a value on a card.
    fn outcome(&self, index: usize, card: &Target, x: i64) -> Option<Outcome> {
        let own = self.on_card.get(&(index, x)).map(|measured| measured.outcome.clone());
        own.or_else(|| self.needs.get(&x).and_then(|need| verdict_for(card, need)))
    }

    /// The largest value that fits; the one before the range if none does.
    fn search(&mut self, index: usize, card: &Target) -> Result<i64, R::Error> {
        let mut by_law = true;
        loop {
            let (fits, not) = self.around(index, card);
            let (first, last) = (fits + 1, not - 1);
            let next: Vec<i64> = match (last < first, by_law) {
                // The values above it, as long as one of them is unknown.
                (true, _) => (not..=fits + ONE_BY_ONE).filter(|x| *x <= self.range.1).collect(),
                (false, true) => self.by_law(card, first, last),
                (false, false) => vec![first + (last - first) / 3, first + 2 * (last - first) / 3],
            };
            let is_open = |x: &i64| self.outcome(index, card, *x).is_none();
            let mut open: Vec<i64> = next.into_iter().filter(is_open).collect();
            open.dedup();
            if open.is_empty() || self.is_unfinished(index) {
                return Ok(fits);
            }
            open.truncate(2);
            self.on_card_itself(index, &open)?;
            by_law = !by_law;
        }
    }

    /// The largest value known to fit and the smallest above it known not to.
    fn around(&self, index: usize, card: &Target) -> (i64, i64) {
        let (mut fits, mut not) = (self.range.0 - 1, self.range.1 + 1);
        let on_cards = self.on_card.keys().filter(|(of, _)| *of == index).map(|(_, x)| x);
        let known: Vec<(i64, bool)> = self
            .needs
            .keys()
            .chain(on_cards)
            .filter_map(|&x| Some((x, self.outcome(index, card, x)?.fits())))
            .collect();
        fits = known.iter().filter(|row| row.1).map(|row| row.0).fold(fits, i64::max);
        let above = known.iter().filter(|row| !row.1 && fits < row.0);
        not = above.map(|row| row.0).fold(not, i64::min);
        (fits, not)
    }

    /// Where laws through the nearest runs reach the limit: with what is allocated, and with what is reserved.
    fn by_law(&self, card: &Target, first: i64, last: i64) -> Vec<i64> {
        let on_cards = self.on_card.iter().map(|((_, x), measured)| (*x, measured));
        let ran = on_cards.chain(self.needs.iter().map(|(x, measured)| (*x, measured)));
        let went: BTreeMap<i64, Peaks> = ran
            .filter(|(_, measured)| measured.outcome.fits())
            .map(|(x, measured)| (x, measured.peaks))
            .collect();
        let reaches = |of: fn(&Peaks) -> u64| {
            let mut near: Vec<(i64, u64)> = went.iter().map(|(x, peaks)| (*x, of(peaks))).collect();
            near.sort_by_key(|(_, bytes)| bytes.abs_diff(card.usable_bytes));
            near.truncate(NEAR);
            Law::through(&near)?.largest_within(card.usable_bytes, self.range)
        };
        let middle = first + (last - first) / 2;
        let guess = |of| reaches(of).unwrap_or(middle).clamp(first, last);
        let (reserved, allocated) = (guess(|peaks| peaks.reserved), guess(|peaks| peaks.allocated));
        match reserved == allocated {
            // With the value after it one run more tells whether the guess was the end.
            true => vec![allocated, (allocated + 1).min(last)],
            false => vec![reserved, allocated],
        }
    }

    /// Runs on the card.
    fn on_card_itself(&mut self, index: usize, which: &[i64]) -> Result<(), R::Error> {
        let trial = |&x: &i64| Trial { values: (self.values)(x), card: index, memory: Memory::Own };
        let measured = self.runner.run(&which.iter().map(trial).collect::<Vec<_>>())?;
        self.on_card.extend(which.iter().map(|x| (index, *x)).zip(measured));
        Ok(())
    }

    /// Runs without a limit whatever of these was not run yet.
    fn need(&mut self, index: usize, which: &[i64]) -> Result<(), R::Error> {
        let mut which: Vec<i64> =
            which.iter().copied().filter(|x| !self.needs.contains_key(x)).collect();
        which.dedup();
        let trial =
            |&x: &i64| Trial { values: (self.values)(x), card: index, memory: Memory::Unlimited };
        let measured = self.runner.run(&which.iter().map(trial).collect::<Vec<_>>())?;
        self.needs.extend(which.into_iter().zip(measured));
        Ok(())
    }
}
