//! How the peak and each of its causes grow with one setting, by the trials of it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use fit::law::{self, Law};
use report::document::{Growth, Scaling};

use super::lab::Trial;

/// A line is trusted if it is off by no more than this.
const LOOSE: f64 = 0.01;

/// What changes by no more than this part of itself does not grow.
const STILL: f64 = 0.01;

/// A cause with less than this part of both peaks is not listed.
const WORTH: f64 = 0.01;

/// Growth of the peak and its causes, and what a line leaves at zero. Values come in their order.
pub(super) fn of(went: &[(i64, &Trial)]) -> (Vec<Growth>, Option<u64>) {
    let (Some((_, first)), Some((_, last))) = (went.first(), went.last()) else {
        return (Vec::new(), None);
    };
    if went.len() < 3 {
        return (Vec::new(), None);
    }
    let points = |of: &dyn Fn(&Trial) -> u64| -> Vec<(i64, u64)> {
        went.iter().map(|(value, trial)| (*value, of(trial))).collect()
    };
    let share = |bytes: u64, of: &Trial| bytes as f64 / of.peaks.allocated.max(1) as f64;
    let peaks = points(&Trial::without_scratch);
    let whole = row(None, &peaks, 1.0);
    let ids: BTreeSet<&str> =
        went.iter().flat_map(|(_, trial)| trial.causes.keys().copied()).collect();
    let bytes = |id: &str, trial: &Trial| trial.causes.get(id).copied().unwrap_or(0);
    let mut causes: Vec<Growth> = ids
        .into_iter()
        .filter(|id| WORTH <= share(bytes(id, first), first).max(share(bytes(id, last), last)))
        .map(|id| {
            let sizes = points(&|trial| bytes(id, trial));
            row(Some(id), &sizes, share(bytes(id, last), last))
        })
        .collect();
    causes.sort_by_key(|row| Reverse(row.to_bytes));
    let rises = peaks.first().map(|point| point.1) < peaks.last().map(|point| point.1);
    let law = Law::through(&peaks).filter(|law| rises && law.degree == 1 && law.worst <= LOOSE);
    (std::iter::once(whole).chain(causes).collect(), law.map(|law| law.at(0)))
}

fn row(cause: Option<&str>, points: &[(i64, u64)], share: f64) -> Growth {
    let sizes = || points.iter().map(|point| point.1);
    let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
    let is_constant = (most - least) as f64 <= STILL * most as f64;
    Growth {
        cause: cause.map(|id| id.replace('-', " ")),
        share,
        from_bytes: points.first().map_or(0, |point| point.1),
        to_bytes: points.last().map_or(0, |point| point.1),
        exponent: match (is_constant, least) {
            (true, _) => Some(0.0),
            // It is not there in each of the runs: the peak is at another moment.
            (false, 0) => None,
            _ => law::exponent(points),
        },
        exact: Law::through(points).is_some_and(|law| law.worst == 0.0),
    }
}

/// How a cause grows with each setting, as it was measured: `linear with batch_size`.
pub(super) fn of_cause(scaling: &Scaling, id: Option<&str>) -> Vec<(String, String)> {
    let Some(name) = id.map(|id| id.replace('-', " ")) else { return Vec::new() };
    let of = |knob: &report::document::Knob| {
        let row = knob.growth.iter().find(|row| row.cause.as_deref() == Some(name.as_str()))?;
        Some((knob.name.clone(), row.law().to_owned()))
    };
    scaling.knobs.iter().filter_map(of).collect()
}
