//! What the points of a sweep say along a knob: how the peak and each of its causes grow, and the smallest world that
//! fits.

use std::collections::{BTreeMap, BTreeSet};

use crate::grid::Point;
use crate::law::{self, Law};
use crate::trial::Outcome;

/// Recorded runs along a knob.
const RUNS: usize = 4;

/// A cause that changes by no more than this part of itself does not grow.
const STILL: f64 = 0.01;

/// A cause with less than this part of the peak is not listed.
const WORTH: f64 = 0.0005;

/// How the allocated peak, or one of its causes, grows with a knob.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    pub knob: String,
    /// The cause, by the id of its findings; `None` for the whole peak.
    pub cause: Option<&'static str>,
    /// Part of the peak at the knob's largest value, from 0 to 1.
    pub share: f64,
    /// `e` of `a + b·x^e`.
    pub exponent: f64,
    /// Whether a polynomial goes through all runs to the byte.
    pub exact: bool,
}

/// The smallest of the worlds that were tried in which each rank's card has room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fewest {
    /// The card, as points refer to it.
    pub card: usize,
    /// The other knobs and their values.
    pub others: Vec<(String, String)>,
    /// How many cards; `None` if none of the worlds fits.
    pub ranks: Option<u64>,
    /// Whether that rests on what was assumed of values that nobody knows.
    pub is_assumed: bool,
}

/// Bytes of each cause and of the whole peak, at one value of a knob.
pub type Causes = (i64, BTreeMap<&'static str, u64>, u64);

/// The smallest world that fits each card, for each combination of the other knobs; `at` is the knob that is a world's
/// size.
pub fn fewest(knobs: &[&str], at: usize, points: &[Point]) -> Vec<Fewest> {
    let others_of = |point: &Point| {
        let named = knobs.iter().map(|name| (*name).to_owned()).zip(point.values.clone());
        let others = named.enumerate().filter(|(index, _)| *index != at);
        others.map(|(_, pair)| pair).collect::<Vec<_>>()
    };
    let ranks_of = |point: &Point| point.values[at].parse::<u64>().ok();
    let mut rows: Vec<Fewest> = Vec::new();
    for point in points.iter().filter(|point| point.outcome != Outcome::NotRun) {
        let others = others_of(point);
        let found = rows.iter().position(|row| row.card == point.card && row.others == others);
        let row = found.unwrap_or_else(|| {
            rows.push(Fewest { card: point.card, others, ranks: None, is_assumed: false });
            rows.len() - 1
        });
        let ranks = ranks_of(point).filter(|_| point.outcome.fits());
        if let Some(ranks) = ranks.filter(|ranks| rows[row].ranks.is_none_or(|best| *ranks < best))
        {
            rows[row].ranks = Some(ranks);
            rows[row].is_assumed = point.outcome == Outcome::FitsIf;
        }
    }
    // As long as a smaller world has not run, nobody knows.
    let is_open = |row: &Fewest| {
        let missing = points.iter().filter(|point| point.outcome == Outcome::NotRun);
        let mut of_row =
            missing.filter(|point| point.card == row.card && others_of(point) == row.others);
        of_row.any(|point| row.ranks.is_none_or(|best| ranks_of(point).is_none_or(|it| it < best)))
    };
    rows.retain(|row| !is_open(row));
    rows.sort_by_key(|row| row.card);
    rows
}

/// The growth of the allocated peak with the knob `at`, by the runs that differ in this knob alone.
pub fn of_peak(knob: &str, at: usize, points: &[Point]) -> Option<Scaling> {
    // On a card libraries may take less: runs without a limit are alike.
    let ran = points.iter().filter(|point| {
        let failed = matches!(point.outcome, Outcome::Failed(_));
        point.card == 0 && point.unlimited.is_some() && !failed
    });
    let mut line: Vec<(i64, u64)> = along(at, ran)
        .filter_map(|point| Some((point.values[at].parse().ok()?, point.unlimited?.allocated)))
        .collect();
    line.sort_unstable();
    line.dedup_by_key(|point| point.0);
    let exponent = law::exponent(&line)?;
    let exact = Law::through(&line).is_some_and(|law| law.worst == 0.0);
    Some(Scaling { knob: knob.to_owned(), cause: None, share: 1.0, exponent, exact })
}

/// Values of all knobs for some runs that differ in the knob `at` alone: recorded, they show how causes grow. None if
/// there are fewer than three.
pub fn values_to_record(at: usize, points: &[Point]) -> Vec<Vec<String>> {
    let went = points
        .iter()
        .filter(|point| !matches!(point.outcome, Outcome::Failed(_) | Outcome::NotRun));
    let Some(first) = went.clone().next() else { return Vec::new() };
    let numbers: BTreeSet<i64> = along(at, went)
        .filter_map(|point| point.values[at].parse().ok())
        .filter(|number| 0 < *number)
        .collect();
    let numbers: Vec<i64> = numbers.into_iter().collect();
    if numbers.len() < 3 {
        return Vec::new();
    }
    let runs = RUNS.min(numbers.len());
    let spread = (0..runs).map(|index| numbers[index * (numbers.len() - 1) / (runs - 1)]);
    let values = spread.map(|number| {
        let mut values = first.values.clone();
        values[at] = number.to_string();
        values
    });
    values.collect()
}

/// Points that differ from the first of them in the knob `at` alone.
fn along<'a>(
    at: usize,
    points: impl Iterator<Item = &'a Point> + Clone,
) -> impl Iterator<Item = &'a Point> {
    let first = points.clone().next();
    points.filter(move |point| {
        let others = first.into_iter().flat_map(|first| point.values.iter().zip(&first.values));
        others.enumerate().all(|(index, (a, b))| index == at || a == b)
    })
}

/// One row for each cause, the largest at the knob's largest value first.
pub fn of_causes(knob: &str, line: &[Causes]) -> Vec<Scaling> {
    let Some((_, largest, whole)) = line.last() else { return Vec::new() };
    let mut ids: Vec<&'static str> = largest.keys().copied().collect();
    ids.sort_by_key(|id| std::cmp::Reverse(largest[id]));
    let row = |id: &'static str| {
        let points: Vec<(i64, u64)> =
            line.iter().map(|(x, sizes, _)| (*x, sizes.get(id).copied().unwrap_or(0))).collect();
        let sizes = || points.iter().map(|point| point.1);
        let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
        let is_constant = (most - least) as f64 <= STILL * most as f64;
        let exponent = if is_constant { Some(0.0) } else { law::exponent(&points) };
        let exact = Law::through(&points).is_some_and(|law| law.worst == 0.0);
        let share = largest[id] as f64 / (*whole).max(1) as f64;
        let knob = knob.to_owned();
        Some(Scaling { knob, cause: Some(id), share, exponent: exponent?, exact })
    };
    ids.into_iter().filter_map(row).filter(|row| WORTH <= row.share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Peaks;
    use crate::grid::How;

    fn point(values: &[&str], allocated: u64, outcome: Outcome) -> Point {
        let peaks = Peaks { allocated, reserved: allocated, device: allocated };
        Point {
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            card: 0,
            outcome,
            peaks,
            unlimited: Some(peaks),
            how: How::Run,
            is_cut_short: false,
        }
    }

    #[test]
    fn the_smallest_world_is_open_while_a_smaller_one_has_not_run() {
        let worlds = |first: Outcome| {
            let all = [("2", first), ("4", Outcome::FitsIf), ("8", Outcome::Fits)];
            let points: Vec<Point> =
                all.map(|(ranks, outcome)| point(&["16", ranks], 1, outcome)).into();
            fewest(&["batch", "world-size"], 1, &points)
        };
        assert_eq!(worlds(Outcome::NotRun), []);
        let [row] = worlds(Outcome::DoesNotFit).try_into().expect("one row");
        assert_eq!((row.ranks, row.is_assumed), (Some(4), true));
        assert_eq!(row.others, [("batch".to_owned(), "16".to_owned())]);
    }

    #[test]
    fn growth_is_that_of_points_which_differ_in_one_knob() {
        let square = |x: u64| point(&[&x.to_string(), "a"], 7 + 3 * x * x, Outcome::Fits);
        let mut points: Vec<Point> = [1, 2, 4, 8].map(square).into();
        points.push(point(&["3", "b"], 1 << 40, Outcome::Fits));
        points.push(point(&["5", "a"], 0, Outcome::Failed("why".into())));
        let scaling = of_peak("size", 0, &points).expect("a law");
        assert!(scaling.exact && (scaling.exponent - 2.0).abs() < 0.01, "{scaling:?}");
        assert_eq!(of_peak("kind", 1, &points), None);
        let values = values_to_record(0, &points);
        assert_eq!(
            values.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(),
            ["1", "2", "4", "8"]
        );
        assert!(values.iter().all(|row| row[1] == "a"));
    }

    #[test]
    fn causes_are_listed_by_size_and_those_that_stand_still_are_constant() {
        let at = |x: i64| {
            (x, BTreeMap::from([("maps", 1000 * x as u64), ("state", 500), ("dust", 1)]), 8500)
        };
        let rows = of_causes("batch", &[2, 4, 8].map(at));
        let named: Vec<_> =
            rows.iter().map(|row| (row.cause.unwrap(), row.exponent.round())).collect();
        assert_eq!(named, [("maps", 1.0), ("state", 0.0)]);
    }
}
