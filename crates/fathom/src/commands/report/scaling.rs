//! How the peak and its causes grow with each setting.

use std::cmp::Reverse;

use anyhow::Result;
use fit::{Lever, Outcome};
use report::document::{Document, Knob, Point, Scaling};

use super::growth;
use super::knobs::Found;
use super::lab::{Lab, Trial};
use super::sizes;
use super::subject::Subject;

/// Settings with more values than one beside their own, the strongest.
const LONG: usize = 4;

/// Less than this part of the peak is no change.
const STILL: f64 = 0.002;

/// What was tried of one setting.
pub(super) struct Line<'a> {
    pub(super) found: &'a Found,
    pub(super) trials: Vec<(String, Trial)>,
}

impl Line<'_> {
    /// The most that it changed the peak, as a part of it.
    fn effect(&self, base: &Trial) -> f64 {
        self.trials.iter().map(|(_, trial)| moved(trial, base)).fold(0.0, f64::max)
    }

    /// Where it stands among others: a batch before what moves as much, since it is the first that people change.
    fn weight(&self, base: &Trial) -> u64 {
        let batch = if self.found.knob.name.to_lowercase().contains("batch") { 1.5 } else { 1.0 };
        (self.effect(base) * batch * 1e6) as u64
    }
}

/// Varies each setting alone.
pub(super) fn add(
    document: &mut Document,
    subject: &Subject,
    lab: &mut Lab,
    found: &[Found],
) -> Result<()> {
    let Some(base) = lab.record(&[Vec::new()])?.pop() else { return Ok(()) };
    let mut lines = first_trials(lab, found)?;
    lines.sort_by_key(|line| Reverse(line.weight(&base)));
    let is_open =
        |line: &&mut Line<'_>| line.found.wanted.is_empty() && line.found.number().is_some();
    for line in lines.iter_mut().filter(is_open).take(LONG) {
        if STILL <= line.effect(&base) {
            more_trials(lab, line)?;
        }
    }
    let mut scaling = Scaling::default();
    for line in &lines {
        match line.trials.iter().find_map(|(_, trial)| failure(trial)) {
            Some(why) if line.trials.iter().all(|(_, trial)| failure(trial).is_some()) => {
                scaling.failed.push((line.found.knob.name.clone(), why));
            }
            _ if line.found.flipped().is_some() && line.found.wanted.is_empty() => {}
            // A signal may have come before one of them ended.
            _ if line.trials.iter().all(|(_, trial)| !trial.outcome.fits()) => {
                scaling.left_out.push(line.found.knob.name.clone())
            }
            _ if line.effect(&base) < STILL => {
                scaling.idle.push(format!("{} {}", line.found.knob.name, line.found.current));
            }
            _ => scaling.knobs.push(knob(line, &base)),
        }
    }
    if let Some(why) = document.why.as_mut() {
        why.sizes = sizes::traced(subject, &base, &lines);
        why.growth = growth::of_cause(&scaling, why.causes.first().map(|cause| cause.id));
    }
    document.scaling = Some(scaling);
    Ok(())
}

/// One value of each setting that was found, all values of those that were asked for; of numbers half first.
fn first_trials<'a>(lab: &mut Lab, found: &'a [Found]) -> Result<Vec<Line<'a>>> {
    let mut plans: Vec<(usize, String)> = Vec::new();
    for (at, found) in found.iter().enumerate() {
        let values = match (found.wanted.as_slice(), found.number(), found.flipped()) {
            ([], Some(number), _) => vec![near(number).to_string()],
            // Switches are remedies.
            ([], ..) => Vec::new(),
            (wanted, ..) => {
                wanted.iter().filter(|value| **value != found.current).cloned().collect()
            }
        };
        plans.extend(values.into_iter().map(|value| (at, value)));
    }
    let mut lines: Vec<Line<'a>> =
        found.iter().map(|found| Line { found, trials: Vec::new() }).collect();
    try_all(lab, &mut lines, plans)?;
    // What fails at half may go through at twice as much.
    let failed = |line: &Line<'_>| {
        line.trials.iter().all(|(_, trial)| failure(trial).is_some()) && !line.trials.is_empty()
    };
    let again: Vec<(usize, String)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| failed(line) && line.found.wanted.is_empty())
        .filter_map(|(at, line)| Some((at, (line.found.number()? * 2).to_string())))
        .collect();
    try_all(lab, &mut lines, again)?;
    Ok(lines)
}

/// Half of an even number, else twice as much.
fn near(number: i64) -> i64 {
    if number % 2 == 0 { number / 2 } else { number * 2 }
}

/// A quarter, half and twice as much, as far as they are whole.
fn more_trials(lab: &mut Lab, line: &mut Line<'_>) -> Result<()> {
    let Some(number) = line.found.number() else { return Ok(()) };
    let quarter = (number % 4 == 0).then_some(number / 4);
    let half = (number % 2 == 0).then_some(number / 2);
    let more = if half.is_none() { Some(number * 3) } else { None };
    let wanted = [quarter, half, Some(number * 2), more];
    let new: Vec<(usize, String)> = wanted
        .into_iter()
        .flatten()
        .map(|value| value.to_string())
        .filter(|value| line.trials.iter().all(|(tried, _)| tried != value))
        .map(|value| (0, value))
        .collect();
    try_all(lab, std::slice::from_mut(line), new)
}

fn try_all(lab: &mut Lab, lines: &mut [Line<'_>], plans: Vec<(usize, String)>) -> Result<()> {
    let lever = |(at, value): &(usize, String)| {
        vec![Lever::Knob { name: lines[*at].found.knob.name.clone(), value: value.clone() }]
    };
    let levers: Vec<Vec<Lever>> = plans.iter().map(lever).collect();
    let trials = lab.record(&levers)?;
    for ((at, value), trial) in plans.into_iter().zip(trials) {
        lines[at].trials.push((value, trial));
    }
    Ok(())
}

/// How far it changed the peak, as a part of it.
fn moved(trial: &Trial, base: &Trial) -> f64 {
    if !trial.outcome.fits() {
        return 0.0;
    }
    let (now, before) = (trial.without_scratch(), base.without_scratch());
    now.abs_diff(before) as f64 / before.max(1) as f64
}

/// Why the script failed, in one line.
fn failure(trial: &Trial) -> Option<String> {
    match &trial.outcome {
        Outcome::Failed(why) => Some(why.lines().next().unwrap_or_default().to_owned()),
        _ => None,
    }
}

/// A setting as the document has it: the command's own value among the others, in order.
fn knob(line: &Line<'_>, base: &Trial) -> Knob {
    let name = line.found.knob.name.clone();
    let own = std::iter::once((line.found.current.clone(), base));
    let mut all: Vec<(String, &Trial)> =
        own.chain(line.trials.iter().map(|(value, trial)| (value.clone(), trial))).collect();
    let numbers: Option<Vec<i64>> = all.iter().map(|(value, _)| value.parse().ok()).collect();
    if numbers.is_some() {
        all.sort_by_key(|(value, _)| value.parse::<i64>().unwrap_or(0));
    }
    let point = |(value, trial): &(String, &Trial)| Point {
        value: value.clone(),
        outcome: report::outcome_name(&trial.outcome),
        allocated_bytes: trial.peaks.allocated,
        reserved_bytes: trial.peaks.reserved,
        device_bytes: trial.peaks.device,
        scratch_bytes: trial.scratch(),
    };
    let went: Vec<(i64, &Trial)> = all
        .iter()
        .filter(|(_, trial)| trial.outcome.fits())
        .filter_map(|(value, trial)| Some((value.parse().ok()?, *trial)))
        .collect();
    let (growth, rest_bytes) =
        if numbers.is_some() { growth::of(&went) } else { (Vec::new(), None) };
    Knob {
        name,
        current: line.found.current.clone(),
        points: all.iter().map(point).collect(),
        growth,
        rest_bytes,
    }
}
