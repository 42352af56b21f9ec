//! Which values fit which card: every combination of the knobs' values on every card.
//!
//! One run without a limit answers for all cards of a kind that have room for what it took; the others are
//! run themselves ([`cards`]). Along a knob with many whole numbers a law is fitted to some runs; points that
//! it predicts far from every limit are not run without one, and one of them is, to check it.

mod cards;

use std::collections::{BTreeMap, BTreeSet};

use self::cards::Verdicts;
use crate::law::Law;
use crate::trial::{Measured, Memory, Outcome, Runner, Target, Trial};
use anatomy::Peaks;

/// A law is fitted along knobs with at least this many values.
const LONG: usize = 6;

/// How far a law may be off its own points and still be used, and how far off the point that checks it.
const LOOSE: f64 = 0.002;

/// Within this share of a card's memory a prediction is no verdict.
const MARGIN: f64 = 0.03;

/// How a point is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A trial was made, with this card or without a limit.
    Run,
    /// A card of the same kind with more memory ran out of it.
    Implied,
    /// A law said so.
    Predicted,
}

/// One combination on one card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// A value for each knob.
    pub values: Vec<String>,
    /// The card, by its index.
    pub card: usize,
    /// Fits or not.
    pub outcome: Outcome,
    /// On this card if it was run itself and fits, else without a limit.
    pub peaks: Peaks,
    /// Without a limit, if that was run.
    pub unlimited: Option<Peaks>,
    /// How the verdict is known.
    pub how: How,
    /// Whether the peaks are those up to where memory ran out, since nothing was run without a limit.
    pub is_cut_short: bool,
}

impl Point {
    /// Whether the peaks are those of a run, or a law's: of what was not run nothing is known.
    pub fn is_known(&self) -> bool {
        self.outcome != Outcome::NotRun || self.unlimited.is_some()
    }
}

/// Every combination on every card. `knobs` has the values of each knob.
pub fn matrix<R: Runner>(
    runner: &mut R,
    knobs: &[Vec<String>],
    cards: &[Target],
) -> Result<Vec<Point>, R::Error> {
    let combinations = combinations(knobs);
    let mut points = Vec::new();
    for kind in kinds(cards) {
        let of_kind: Vec<usize> =
            (0..cards.len()).filter(|&card| cards[card].kind == kind).collect();
        let needs = needs(runner, knobs, &combinations, &of_kind, cards)?;
        let lines: Vec<Vec<usize>> =
            lines(knobs, &combinations).into_iter().map(|(_, line)| line).collect();
        let verdicts = Verdicts {
            combinations: &combinations,
            needs: &needs,
            lines: &lines,
            cards,
            of_kind: &of_kind,
        };
        points.extend(verdicts.find(runner)?);
    }
    Ok(points)
}

fn kinds(cards: &[Target]) -> Vec<usize> {
    let mut kinds: Vec<usize> = cards.iter().map(|card| card.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// All combinations, the last knob fastest.
pub fn combinations(knobs: &[Vec<String>]) -> Vec<Vec<String>> {
    knobs.iter().fold(vec![Vec::new()], |all, values| {
        let extended = |start: Vec<String>| {
            values
                .iter()
                .map(move |value| start.iter().chain([value]).cloned().collect::<Vec<String>>())
        };
        all.into_iter().flat_map(extended).collect()
    })
}

/// What each combination needs without a limit.
type Needs = Vec<(Measured, How)>;

fn needs<R: Runner>(
    runner: &mut R,
    knobs: &[Vec<String>],
    combinations: &[Vec<String>],
    of_kind: &[usize],
    cards: &[Target],
) -> Result<Needs, R::Error> {
    let mut known: BTreeMap<usize, Measured> = BTreeMap::new();
    let trial = |&index: &usize| Trial {
        values: combinations[index].clone(),
        card: of_kind[0],
        memory: Memory::Unlimited,
    };
    let settled: BTreeSet<usize> =
        (0..combinations.len()).filter(|index| runner.is_settled(&trial(index))).collect();
    let mut run = |known: &mut BTreeMap<usize, Measured>, which: &[usize]| {
        let which: Vec<usize> =
            which.iter().copied().filter(|index| !known.contains_key(index)).collect();
        let measured = runner.run(&which.iter().map(trial).collect::<Vec<_>>())?;
        known.extend(which.into_iter().zip(measured));
        Ok(())
    };
    let lines = lines(knobs, combinations);
    let spread = |line: &Vec<usize>| {
        [0, line.len() / 3, 2 * line.len() / 3, line.len() - 1].map(|at| line[at])
    };
    let first: Vec<usize> = match lines.first() {
        Some((knob, _)) if LONG <= knobs[*knob].len() => {
            let some = lines.iter().flat_map(|(_, line)| spread(line));
            some.chain(settled).collect::<BTreeSet<usize>>().into_iter().collect()
        }
        _ => (0..combinations.len()).collect(),
    };
    run(&mut known, &first)?;
    let mut predicted = BTreeMap::new();
    for (knob, line) in &lines {
        let guesses = guesses(*knob, line, combinations, &known, of_kind, cards);
        // The middle one is run, to check the law; if it is off, so may be the others.
        let keys: Vec<usize> = guesses.keys().copied().collect();
        let Some(&check) = keys.get(keys.len() / 2) else { continue };
        run(&mut known, &[check])?;
        let holds = |guess: &Peaks, found: &Measured| {
            let off = |a: u64, b: u64| (a as f64 - b as f64).abs() <= LOOSE * b as f64;
            off(guess.allocated, found.peaks.allocated) && off(guess.reserved, found.peaks.reserved)
        };
        if holds(&guesses[&check], &known[&check]) {
            predicted.extend(guesses.into_iter().filter(|(index, _)| *index != check));
        }
    }
    let rest: Vec<usize> =
        (0..combinations.len()).filter(|index| !predicted.contains_key(index)).collect();
    run(&mut known, &rest)?;
    // What holds for the runs that a law goes through holds for what it predicts.
    let is_assumed = known.values().any(|measured| measured.outcome == Outcome::FitsIf);
    let fits = if is_assumed { Outcome::FitsIf } else { Outcome::Fits };
    let of = |index: usize| match known.remove(&index) {
        Some(measured) => (measured, How::Run),
        None => (Measured { outcome: fits.clone(), peaks: predicted[&index] }, How::Predicted),
    };
    Ok((0..combinations.len()).map(of).collect())
}

/// Combinations that differ in the knob with most whole numbers alone, in the order of its values.
fn lines(knobs: &[Vec<String>], combinations: &[Vec<String>]) -> Vec<(usize, Vec<usize>)> {
    let is_whole = |values: &Vec<String>| values.iter().all(|value| value.parse::<i64>().is_ok());
    let long = (0..knobs.len()).filter(|&knob| is_whole(&knobs[knob]) && LONG <= knobs[knob].len());
    let Some(knob) = long.max_by_key(|&knob| knobs[knob].len()) else { return Vec::new() };
    let mut lines: BTreeMap<Vec<&String>, Vec<usize>> = BTreeMap::new();
    for (index, values) in combinations.iter().enumerate() {
        let others = values
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != knob)
            .map(|(_, value)| value)
            .collect();
        lines.entry(others).or_default().push(index);
    }
    let number = |index: &usize| combinations[*index][knob].parse::<i64>().unwrap_or(0);
    lines
        .into_values()
        .map(|mut line| {
            line.sort_by_key(number);
            (knob, line)
        })
        .collect()
}

/// Points of a line that a law predicts, far from every card's limit.
fn guesses(
    knob: usize,
    line: &[usize],
    combinations: &[Vec<String>],
    known: &BTreeMap<usize, Measured>,
    of_kind: &[usize],
    cards: &[Target],
) -> BTreeMap<usize, Peaks> {
    let number = |index: usize| combinations[index][knob].parse::<i64>().unwrap_or(0);
    let ran: Vec<(i64, Peaks)> = line
        .iter()
        .filter_map(|index| known.get(index).map(|measured| (number(*index), measured)))
        .filter(|(_, measured)| measured.outcome.fits())
        .map(|(x, measured)| (x, measured.peaks))
        .collect();
    let law = |of: fn(&Peaks) -> u64| {
        let points: Vec<(i64, u64)> = ran.iter().map(|(x, peaks)| (*x, of(peaks))).collect();
        Law::through(&points).filter(|law| law.worst <= LOOSE)
    };
    let laws =
        (law(|peaks| peaks.allocated), law(|peaks| peaks.reserved), law(|peaks| peaks.device));
    let (Some(allocated), Some(reserved), Some(device)) = laws else { return BTreeMap::new() };
    let at = |x: i64| Peaks {
        allocated: allocated.at(x),
        reserved: reserved.at(x),
        device: device.at(x),
    };
    let is_clear = |peaks: &Peaks| {
        of_kind.iter().all(|&card| {
            let usable = cards[card].usable_bytes as f64;
            peaks.reserved as f64 * (1.0 + MARGIN) <= usable
                || usable < peaks.allocated as f64 * (1.0 - MARGIN)
        })
    };
    let missing = line.iter().filter(|index| !known.contains_key(index));
    missing.map(|&index| (index, at(number(index)))).filter(|(_, peaks)| is_clear(peaks)).collect()
}
