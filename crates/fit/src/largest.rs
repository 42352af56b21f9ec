//! The largest value of a knob that fits a card.
//!
//! What is allocated at once grows with the knob, so the values that could fit end where it passes the
//! card's memory; laws say where to look. Below that end, where the reserved peak is larger than the
//! card, PyTorch may still get through by giving cached segments back: there the card itself is run.

use std::collections::BTreeMap;

use crate::law::Law;
use crate::trial::{Card, Measured, Memory, Peaks, Runner, Trial, Verdict, verdict_for};

/// Below the end of what could fit, this many values are run one by one before the search halves; and so
/// many above the value that halving finds.
const ONE_BY_ONE: i64 = 6;

/// Above the value that halving finds, no more than this many are run.
const CLIMB: i64 = 120;

/// A range of whole numbers, both ends included.
pub type Range = (i64, i64);

/// The answer for one card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Largest {
    /// The card, by its index.
    pub card: usize,
    /// `None`: even the smallest value does not fit.
    pub value: Option<i64>,
    /// Peaks at that value.
    pub peaks: Peaks,
    /// Whether the range ended before the memory did.
    pub at_end_of_range: bool,
    /// Why a larger value was not possible, if not for memory.
    pub failure: Option<String>,
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

    /// What was run without a limit: value and what came of it.
    pub fn needs(&self) -> impl Iterator<Item = (i64, &Measured)> {
        self.needs.iter().map(|(x, measured)| (*x, measured))
    }

    /// What was run on cards themselves: card, value and what came of it.
    pub fn on_card(&self) -> impl Iterator<Item = (usize, i64, &Measured)> {
        self.on_card.iter().map(|((card, x), measured)| (*card, *x, measured))
    }

    /// The largest value for one card. Cards asked about one after the other must be of one kind.
    pub fn largest(&mut self, index: usize, card: &Card) -> Result<Largest, R::Error> {
        let (low, high) = self.range;
        self.need(index, &[low, (low + 3).min(high), (low + 7).min(high)])?;
        let none = |failure| Largest {
            card: index,
            value: None,
            peaks: Peaks::default(),
            at_end_of_range: false,
            failure,
        };
        if let Verdict::Failed(why) = &self.needs[&low].verdict {
            return Ok(none(Some(why.clone())));
        }
        let end = self.end(index, card.usable_bytes)?;
        let failure = self.needs.get(&end).and_then(|measured| match &measured.verdict {
            Verdict::Failed(why) => Some(why.clone()),
            _ => None,
        });
        let Some(value) = self.below(index, card, end)? else { return Ok(none(None)) };
        let measured = self.on_card.get(&(index, value)).unwrap_or(&self.needs[&value]);
        Ok(Largest {
            card: index,
            value: Some(value),
            peaks: measured.peaks,
            at_end_of_range: high == value,
            failure,
        })
    }

    /// The first value at which more is allocated than the card has, or the script fails, or the range is over.
    fn end(&mut self, index: usize, usable: u64) -> Result<i64, R::Error> {
        let (mut within, mut beyond) = (self.range.0 - 1, self.range.1 + 1);
        let mut halve = false;
        loop {
            for (&x, measured) in &self.needs {
                let is_over =
                    measured.verdict != Verdict::Fits || usable < measured.peaks.allocated;
                match is_over {
                    true => beyond = beyond.min(x),
                    false if x < beyond => within = within.max(x),
                    false => {}
                }
            }
            if beyond - within <= 1 {
                return Ok(beyond);
            }
            let middle = within + (beyond - within) / 2;
            let guess = if halve { middle } else { self.guess(usable).unwrap_or(middle) };
            let guess = guess.clamp(within + 1, beyond - 1);
            // With the value after it one run more tells whether the guess was the end.
            self.need(index, &[guess, (guess + 1).min(beyond - 1)])?;
            halve = !halve;
        }
    }

    /// Where a law through the nearest runs reaches the limit.
    fn guess(&self, usable: u64) -> Option<i64> {
        let mut near: Vec<(i64, u64)> = self
            .needs
            .iter()
            .filter(|(_, measured)| measured.verdict == Verdict::Fits)
            .map(|(x, measured)| (*x, measured.peaks.allocated))
            .collect();
        near.sort_by_key(|(_, allocated)| allocated.abs_diff(usable));
        near.truncate(4);
        Law::through(&near)?.largest_within(usable, self.range)
    }

    /// The largest value below `end` that fits the card.
    fn below(&mut self, index: usize, card: &Card, end: i64) -> Result<Option<i64>, R::Error> {
        let low = self.range.0;
        let mut x = end - 1;
        while low <= x && end - 1 - ONE_BY_ONE < x {
            if self.fits(index, card, x)? {
                return Ok(Some(x));
            }
            x -= 1;
        }
        if x < low {
            return Ok(None);
        }
        // Far below: halve between a value that fits and one that does not.
        let (mut fits, mut not) = (low - 1, x + 1);
        while 1 < not - fits {
            let middle = fits + (not - fits) / 2;
            match self.fits(index, card, middle)? {
                true => fits = middle,
                false => not = middle,
            }
        }
        match fits < low {
            true => Ok(None),
            false => self.climb(index, fits, end).map(Some),
        }
    }

    /// Near the limit what fits may change from value to value, as the libraries' work areas do: the values
    /// above one that fits are run, until several in a row do not.
    fn climb(&mut self, index: usize, from: i64, end: i64) -> Result<i64, R::Error> {
        let (mut found, mut x) = (from, from + 1);
        while x < end && x <= found + ONE_BY_ONE && x <= from + CLIMB {
            let pair = [x, (x + 1).min(end - 1)];
            self.on_card_itself(index, &pair)?;
            let fits = |x: &&i64| self.on_card[&(index, **x)].verdict == Verdict::Fits;
            found = pair.iter().filter(fits).copied().max().unwrap_or(found);
            x += 2;
        }
        self.need(index, &[found])?;
        Ok(found)
    }

    fn fits(&mut self, index: usize, card: &Card, x: i64) -> Result<bool, R::Error> {
        self.need(index, &[x])?;
        let need = &self.needs[&x];
        if let (Verdict::Fits, Some(decided)) = (&need.verdict, verdict_for(card, &need.peaks)) {
            return Ok(decided == Verdict::Fits);
        }
        self.on_card_itself(index, &[x])?;
        Ok(self.on_card[&(index, x)].verdict == Verdict::Fits)
    }

    /// Runs on the card whatever of these was not run there yet.
    fn on_card_itself(&mut self, index: usize, which: &[i64]) -> Result<(), R::Error> {
        let mut which: Vec<i64> =
            which.iter().copied().filter(|x| !self.on_card.contains_key(&(index, *x))).collect();
        which.dedup();
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
