//! How the peak and its causes grow with each setting, and which settings make the sizes of the cause.

use std::cmp::Reverse;

use anatomy::Alike;
use anyhow::Result;
use fit::law::{self, Law};
use fit::trace::{Seen, made_of};
use fit::{Lever, Outcome, scaling as laws};
use report::document::{Document, Growth, Knob, Point, Scaling, Traced};

use super::knobs::Found;
use super::lab::{Lab, Trial};
use super::subject::Subject;

/// Settings with more values than one beside their own, the strongest.
const LONG: usize = 4;

/// Less than this part of the peak is no change.
const STILL: f64 = 0.002;

/// A line is trusted if it is off by no more than this.
const LOOSE: f64 = 0.01;

/// Tensors of the cause whose sizes are traced.
const TRACED: usize = 3;

/// What was tried of one setting.
struct Line<'a> {
    found: &'a Found,
    trials: Vec<(String, Trial)>,
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
            _ if line.trials.is_empty() => scaling.left_out.push(line.found.knob.name.clone()),
            _ if line.effect(&base) < STILL => {
                scaling.idle.push(format!("{} {}", line.found.knob.name, line.found.current));
            }
            _ => scaling.knobs.push(knob(line, &base)),
        }
    }
    if let Some(why) = document.why.as_mut() {
        why.sizes = traced(subject, &base, &lines);
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
        if numbers.is_some() { growth(&name, &went) } else { (Vec::new(), None) };
    Knob {
        name,
        current: line.found.current.clone(),
        points: all.iter().map(point).collect(),
        growth,
        rest_bytes,
    }
}

/// Growth of the peak and its causes, and what a line leaves at zero.
fn growth(name: &str, went: &[(i64, &Trial)]) -> (Vec<Growth>, Option<u64>) {
    let peaks: Vec<(i64, u64)> =
        went.iter().map(|(value, trial)| (*value, trial.without_scratch())).collect();
    let Some(exponent) = law::exponent(&peaks) else { return (Vec::new(), None) };
    let law = Law::through(&peaks);
    let exact = law.as_ref().is_some_and(|law| law.worst == 0.0);
    let line: Vec<laws::Causes> = went
        .iter()
        .map(|(value, trial)| (*value, trial.causes.clone(), trial.peaks.allocated))
        .collect();
    let causes = laws::of_causes(name, &line).into_iter().map(|row| Growth {
        cause: row.cause.map(|id| id.replace('-', " ")),
        share: row.share,
        exponent: row.exponent,
        exact: row.exact,
    });
    let whole = Growth { cause: None, share: 1.0, exponent, exact };
    let rest = law.filter(|law| law.degree == 1 && law.worst <= LOOSE).map(|law| law.at(0));
    (std::iter::once(whole).chain(causes).collect(), rest)
}

/// The sizes of the first cause's largest tensors, by the settings that move them.
fn traced(subject: &Subject, base: &Trial, lines: &[Line<'_>]) -> Vec<Traced> {
    // Of what ended the run, where memory did: its tensors are there in the run without a limit.
    let told = report::document::causes(&subject.run, subject.whole());
    let first = told.iter().find(|finding| finding.counted);
    let findings = subject.whole().findings();
    let same = first.and_then(|first| findings.iter().find(|finding| finding.id == first.id));
    let cause = same.or_else(|| findings.iter().find(|finding| finding.counted));
    let evidence = cause.into_iter().flat_map(|finding| &finding.evidence);
    let (mut rows, mut tensors): (Vec<Traced>, usize) = (Vec::new(), 0);
    for proof in evidence.filter(|proof| !proof.dtype.is_empty() && 1 < proof.shape.len()) {
        let is_it = |it: &&Alike| {
            let first = &it.first;
            first.shape == proof.shape
                && first.dtype == proof.dtype
                && first.origin.file == proof.file
                && first.origin.line == proof.line
        };
        let Some(tensor) = base.tensors.iter().find(is_it) else { continue };
        let sizes: Vec<String> = proof.shape.iter().map(u64::to_string).collect();
        let text = format!("{}[{}]", proof.dtype, sizes.join(", "));
        if rows.iter().any(|row| row.tensor == text) {
            continue;
        }
        for (side, size) in proof.shape.iter().enumerate().filter(|(_, size)| 1 < **size) {
            let row = trace_one((tensor, base), side, *size, lines);
            let is_new = rows.iter().all(|it| (it.size, &it.made_of) != (row.size, &row.made_of));
            if is_new {
                let at = format!("{}:{}", proof.file, proof.line);
                rows.push(Traced { tensor: text.clone(), at, ..row });
            }
        }
        tensors += 1;
        if tensors == TRACED {
            break;
        }
    }
    // Without a setting that moves one of them there is nothing to say.
    if rows.iter().all(|row| row.made_of.is_empty()) {
        rows.clear();
    }
    rows
}

/// One side of a shape, in the trials of every setting.
fn trace_one(
    (tensor, base): (&Alike, &Trial),
    side: usize,
    size: u64,
    lines: &[Line<'_>],
) -> Traced {
    let (mut seen, mut became, mut moved_by) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines {
        let name = short(&line.found.knob.name, lines);
        let went = line.trials.iter().filter(|(_, trial)| trial.outcome.fits());
        let now = |trial: &Trial| same_tensor(tensor, base, trial)?.first.shape.get(side).copied();
        let became_of: Vec<(&String, u64)> =
            went.filter_map(|(value, trial)| Some((value, now(trial)?))).collect();
        let Some((value, now)) = became_of.iter().find(|(_, now)| *now != size) else {
            seen.extend(
                line.found.number().map(|number| Seen { knob: name, sizes: vec![(number, size)] }),
            );
            continue;
        };
        became.push(format!("{name} {value}: {now}"));
        let Some(number) = line.found.number() else {
            moved_by.push(name);
            continue;
        };
        let all = became_of.iter().filter_map(|(value, now)| Some((value.parse().ok()?, *now)));
        let sizes = std::iter::once((number, size)).chain(all).collect();
        seen.push(Seen { knob: name, sizes });
    }
    let made_of = match (made_of(size, &seen), moved_by.is_empty()) {
        (text, true) => text,
        (text, false) if text.is_empty() => format!("moves with {}", moved_by.join(", ")),
        (text, false) => format!("{text}; moves with {}", moved_by.join(", ")),
    };
    Traced { size, made_of, seen: became, ..Traced::default() }
}

/// The last part of a dotted name, if no other setting ends so.
fn short(name: &str, lines: &[Line<'_>]) -> String {
    fn last(name: &str) -> &str {
        name.rsplit('.').next().unwrap_or(name)
    }
    let alike = lines.iter().filter(|line| last(&line.found.knob.name) == last(name)).count();
    if alike < 2 { last(name).to_owned() } else { name.to_owned() }
}

/// The same tensor in another trial: by its line and maker, and its place among those of different sizes there.
fn same_tensor<'a>(tensor: &Alike, base: &Trial, other: &'a Trial) -> Option<&'a Alike> {
    let key = |it: &Alike| {
        let origin = &it.first.origin;
        let module: String =
            origin.module.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        (
            origin.file.clone(),
            origin.line,
            origin.operator.clone(),
            origin.node.clone(),
            it.first.dtype.clone(),
            it.first.shape.len(),
            module,
        )
    };
    let wanted = key(tensor);
    fn distinct(mut all: Vec<&Alike>) -> Vec<&Alike> {
        all.sort_by_key(|it| Reverse(it.first.bytes));
        all.dedup_by(|a, b| a.first.shape == b.first.shape);
        all
    }
    let here = distinct(base.tensors.iter().filter(|it| key(it) == wanted).collect());
    let there = distinct(other.tensors.iter().filter(|it| key(it) == wanted).collect());
    let at = here.iter().position(|it| it.first.shape == tensor.first.shape)?;
    if here.len() != there.len() {
        return None;
    }
    there.get(at).copied()
}
