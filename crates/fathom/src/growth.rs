//! How each cause of a peak grows with a knob: measured by recorded runs, never assumed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use fit::{Law, Verdict, law};
use report::sweep::{Scaling, Sweep};

use crate::runner::OnPhantom;

/// Runs along each knob.
const RUNS: usize = 4;

/// A cause that changes by no more than this part of itself does not grow.
const STILL: f64 = 0.01;

/// A cause with less than this part of the peak is not listed.
const WORTH: f64 = 0.0005;

/// Bytes of each cause, and of the whole, at a value of the knob.
type Line = Vec<(i64, BTreeMap<&'static str, u64>, u64)>;

/// Runs a few values of each knob again with the recorder, the other knobs as in the first run.
pub(crate) fn add_causes(answer: &mut Sweep, runner: &mut OnPhantom) -> Result<()> {
    for at in 0..answer.knobs.len() {
        let values = values(answer, at);
        let runs = runner.record_each(&values)?;
        let line: Line = values
            .iter()
            .zip(runs)
            .filter_map(|(values, run)| {
                let anatomy = run.anatomy()?;
                let whole = anatomy.allocated_peak.allocated;
                Some((values[at].parse().ok()?, diagnose::bytes_by_cause(anatomy), whole))
            })
            .collect();
        let knob = answer.knobs[at].name.clone();
        let after = answer.scaling.iter().rposition(|scaling| scaling.knob == knob);
        let place = after.map_or(answer.scaling.len(), |index| index + 1);
        answer.scaling.splice(place..place, causes(&knob, &line));
    }
    Ok(())
}

/// Values of all knobs for some runs that differ in one of them alone.
fn values(answer: &Sweep, at: usize) -> Vec<Vec<String>> {
    let went = answer
        .points
        .iter()
        .filter(|point| !matches!(point.verdict, Verdict::Failed(_) | Verdict::NotRun));
    let Some(first) = went.clone().next() else { return Vec::new() };
    let numbers: BTreeSet<i64> = went
        .filter(|point| {
            let others = point.values.iter().zip(&first.values).enumerate();
            others.into_iter().all(|(index, (a, b))| index == at || a == b)
        })
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

/// One row for each cause, the largest at the largest value first.
fn causes(knob: &str, line: &Line) -> Vec<Scaling> {
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
