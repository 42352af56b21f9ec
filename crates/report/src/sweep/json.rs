//! `fathom.sweep/1`: fields are only ever added.

use std::collections::BTreeMap;

use fit::Outcome;
use fit::grid::How;
use serde::Serialize;

use super::Sweep;
use crate::assumed::word;
use crate::trials::TrialsMirror;

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    knobs: Vec<Knob<'a>>,
    gpus: Vec<Gpu<'a>>,
    points: Vec<Point<'a>>,
    largest: Vec<Largest<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fewest: Vec<Fewest<'a>>,
    scaling: Vec<Scaling<'a>>,
    trials: Trials,
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<Shard>,
    #[serde(flatten)]
    all_trials: TrialsMirror<'a>,
}

#[derive(Serialize)]
struct Knob<'a> {
    name: &'a str,
    values: &'a [String],
}

#[derive(Serialize)]
struct Gpu<'a> {
    name: &'a str,
    memory_bytes: u64,
    used_bytes: u64,
    context_bytes: u64,
}

#[derive(Serialize)]
struct Point<'a> {
    values: BTreeMap<&'a str, &'a str>,
    gpu: &'a str,
    verdict: &'static str,
    failure: Option<&'a str>,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
    device_bytes: u64,
    how: &'static str,
    /// Of a point that is not run: the job that runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<String>,
}

#[derive(Serialize)]
struct Largest<'a> {
    gpu: &'a str,
    knob: &'a str,
    value: Option<i64>,
    /// Whether that rests on values that nobody knows.
    is_assumed: bool,
    others: BTreeMap<&'a str, &'a str>,
    peak_reserved_bytes: u64,
    device_bytes: u64,
    at_end_of_range: bool,
    /// Whether a larger value may fit, since the search was ended.
    unfinished: bool,
    failure: Option<&'a str>,
}

#[derive(Serialize)]
struct Fewest<'a> {
    gpu: &'a str,
    others: BTreeMap<&'a str, &'a str>,
    ranks: Option<u64>,
    is_assumed: bool,
}

#[derive(Serialize)]
struct Scaling<'a> {
    knob: &'a str,
    exponent: f64,
    /// `peak_allocated_bytes`, or the id of a cause.
    of: &'static str,
    share_of_peak: f64,
    exact: bool,
}

/// Which of several jobs this is, and what others have not run yet.
#[derive(Serialize)]
struct Shard {
    number: u32,
    count: u32,
    rows: usize,
    rows_missing: usize,
}

#[derive(Serialize)]
struct Trials {
    run: usize,
    remembered: usize,
}

/// The answer for programs.
pub fn json(sweep: &Sweep) -> String {
    let report = Report {
        schema: "fathom.sweep/1",
        knobs: sweep
            .knobs
            .iter()
            .map(|knob| Knob { name: &knob.name, values: &knob.values })
            .collect(),
        gpus: sweep
            .cards
            .iter()
            .map(|card| Gpu {
                name: &card.name,
                memory_bytes: card.card.memory_bytes,
                used_bytes: card.card.used_bytes,
                context_bytes: card.card.context_bytes,
            })
            .collect(),
        points: sweep.points.iter().map(|point| self::point(sweep, point)).collect(),
        largest: sweep.largest.iter().map(|row| largest(sweep, row)).collect(),
        fewest: sweep.fewest.iter().map(|row| fewest(sweep, row)).collect(),
        scaling: sweep
            .scaling
            .iter()
            .map(|scaling| Scaling {
                knob: &scaling.knob,
                exponent: scaling.exponent,
                of: scaling.cause.unwrap_or("peak_allocated_bytes"),
                share_of_peak: scaling.share,
                exact: scaling.exact,
            })
            .collect(),
        shard: sweep.shard.map(|super::Shard { number, count }| Shard {
            number,
            count,
            rows: sweep.rows(),
            rows_missing: sweep.missing().len(),
        }),
        trials: Trials { run: sweep.trials.run, remembered: sweep.trials.remembered },
        all_trials: sweep.trials.mirror(),
    };
    serde_json::to_string_pretty(&report).unwrap_or_default() + "\n"
}

fn point<'a>(sweep: &'a Sweep, point: &'a fit::grid::Point) -> Point<'a> {
    let names = sweep.knobs.iter().map(|knob| knob.name.as_str());
    let failure = match &point.outcome {
        Outcome::Failed(why) => Some(why.as_str()),
        _ => None,
    };
    Point {
        values: names.zip(point.values.iter().map(String::as_str)).collect(),
        gpu: &sweep.cards[point.card].name,
        verdict: word(&point.outcome),
        failure,
        peak_allocated_bytes: point.peaks.allocated,
        peak_reserved_bytes: point.peaks.reserved,
        device_bytes: taken(&point.peaks, &sweep.cards[point.card].card),
        how: match point.how {
            How::Run => "run",
            How::Implied => "implied",
            How::Predicted => "predicted",
        },
        shard: sweep.shard_of(&point.values).filter(|_| point.outcome == Outcome::NotRun),
    }
}

fn fewest<'a>(sweep: &'a Sweep, row: &'a super::Fewest) -> Fewest<'a> {
    let others = row.others.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Fewest {
        gpu: &sweep.cards[row.card].name,
        others: others.collect(),
        ranks: row.ranks,
        is_assumed: row.is_assumed,
    }
}

fn largest<'a>(sweep: &'a Sweep, row: &'a super::Row) -> Largest<'a> {
    let card = &sweep.cards[row.largest.card];
    Largest {
        gpu: &card.name,
        knob: &row.knob,
        value: row.largest.value,
        is_assumed: row.largest.is_assumed,
        others: row.others.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        peak_reserved_bytes: row.largest.peaks.reserved,
        device_bytes: taken(&row.largest.peaks, &card.card),
        at_end_of_range: row.largest.at_end_of_range,
        unfinished: row.largest.unfinished,
        failure: row.largest.failure.as_deref(),
    }
}

/// What a card gives: PyTorch's memory and the context, and what libraries such as NCCL take.
fn taken(peaks: &fit::Peaks, card: &gpus::Card) -> u64 {
    peaks.device.max(peaks.reserved + card.context_bytes)
}
