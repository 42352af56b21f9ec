//! What each remedy brings, alone; and the one change, applied and run.

use anyhow::Result;
use fit::plan::{Answer, Bench, Plan, Written, search, survey};
use fit::{Label, Lever};
use report::document::{Document, Gain, Remedy, Tried};
use study::Verdict;

use super::change;
use super::lab::Lab;
use super::subject::Subject;

/// What people try besides, though it cannot lower a peak.
const ASKED: [&str; 1] = ["empty_cache"];

/// A change that brings less is not worth being the one.
const WORTH: f64 = 0.05;

/// A change that brings so much is preferred to a stronger one that changes more.
const MUCH: f64 = 0.15;

/// Plans that are written at the most, until one is a patch.
const WRITTEN: usize = 3;

/// Time of a step beyond which a cheaper change is preferred.
const SLOW: f64 = 1.6;

pub(super) fn add(document: &mut Document, subject: &Subject, lab: &mut Lab) -> Result<()> {
    let wish = lab.wish.clone();
    let answer = survey(&mut lab.fitting, &wish)?;
    if !answer.baseline.outcome.fits() {
        return Ok(());
    }
    let has_card = subject.run.card.is_some();
    let mut tried = Tried {
        allocated_bytes: answer.baseline.peaks.allocated,
        reserved_bytes: answer.baseline.peaks.reserved,
        context_bytes: lab.card.context_bytes,
        remedies: answer.plans.iter().map(|plan| remedy(plan, has_card)).collect(),
        not_applicable: answer.not_applicable.clone(),
        asked: asked(subject),
    };
    tried.remedies.extend(switches(lab)?);
    tried.remedies.sort_by_key(|remedy| remedy.reserved_bytes);
    document.tried = Some(tried);
    document.known.has_modelled_time();
    // The best of what was tried before a signal came is not the best.
    if crate::session::ending().is_some() {
        return Ok(());
    }
    choose(document, subject, lab, answer)
}

fn remedy(plan: &Plan, has_card: bool) -> Remedy {
    Remedy {
        name: change::name(&plan.levers),
        what: what(&plan.levers),
        allocated_bytes: plan.peaks.allocated,
        reserved_bytes: plan.peaks.reserved,
        time: Some(plan.cost_ratio),
        results: plan.label.name().to_owned(),
        fits: has_card.then(|| plan.outcome.fits()),
    }
}

/// What a lever changes, in the table's words.
fn what(levers: &[Lever]) -> String {
    let each = levers.iter().filter_map(Lever::row).map(|row| row.change);
    each.collect::<Vec<_>>().join("; ")
}

/// Switches of the script's own, each turned.
fn switches(lab: &mut Lab) -> Result<Vec<Remedy>> {
    let turned: Vec<(String, &'static str)> = lab
        .switches
        .iter()
        .filter_map(|found| Some((found.knob.name.clone(), found.flipped()?)))
        .collect();
    let lever = |(name, value): &(String, &'static str)| {
        vec![Lever::Knob { name: name.clone(), value: (*value).to_owned() }]
    };
    let plans: Vec<Vec<Lever>> = turned.iter().map(lever).collect();
    let trials = lab.measure(&plans)?;
    let rows = turned.into_iter().zip(trials).filter(|(_, measured)| measured.outcome.fits());
    let row = |((name, value), measured): ((String, &'static str), fit::Measured)| Remedy {
        name: format!("{name} {value}"),
        what: "a setting of the script".to_owned(),
        allocated_bytes: measured.peaks.allocated,
        reserved_bytes: measured.peaks.reserved,
        time: None,
        results: change::YOURS.to_owned(),
        fits: None,
    };
    Ok(rows.map(row).collect())
}

/// What follows from the peak itself.
fn asked(subject: &Subject) -> Vec<(String, String)> {
    let run = subject.whole();
    let Some(anatomy) = run.anatomy() else { return Vec::new() };
    let about = diagnose::About { anatomy, findings: run.findings(), command: &[] };
    let answer = |name: &&str| ((*name).to_owned(), diagnose::ask(&about, name).why);
    ASKED.iter().map(answer).collect()
}

/// The plan that makes it fit; where it fits already, the remedy that keeps results and brings most.
fn choose(document: &mut Document, subject: &Subject, lab: &mut Lab, answer: Answer) -> Result<()> {
    let is_short = subject.run.verdict == Verdict::DoesNotFit;
    let found = match is_short {
        true => {
            let wish = fit::plan::Wish {
                allow_training: false,
                knobs: lab.smaller(document),
                ..lab.wish.clone()
            };
            let searched = search(&mut lab.fitting, &wish)?;
            searched.chosen.map(|at| (searched.plans[at].clone(), searched.baseline.peaks))
        }
        false => None,
    };
    let (plan, before) = match found {
        Some((plan, before)) => (Some(plan), before),
        None => {
            let before = subject.peaks().filter(|_| !is_short);
            (written(lab, &answer)?, before.unwrap_or(answer.baseline.peaks))
        }
    };
    let Some(plan) = plan else {
        document.answer.has_no_change = !is_short;
        return Ok(());
    };
    let fits = is_short.then(|| plan.outcome.fits());
    let changed = change::of(lab, &plan, &before);
    document.answer.gain = Some(Gain {
        what: changed.what.clone(),
        results: changed.results.clone(),
        before_bytes: changed.before.device_bytes,
        after_bytes: changed.after.device_bytes,
        fits,
    });
    document.change = Some(changed);
    Ok(())
}

/// The best plan, as what its patch does; of the few best the first that can be written. One that brings little does not
/// take the place of one that brings much.
fn written(lab: &mut Lab, answer: &Answer) -> Result<Option<Plan>> {
    let mut first = None;
    let all = best(answer);
    let brings_much = |plan: &Plan| MUCH <= gain(plan.peaks.reserved, answer);
    let is_much = all.first().is_some_and(|plan| brings_much(plan));
    let candidates = all.into_iter().filter(|plan| brings_much(plan) == is_much);
    for plan in candidates.take(WRITTEN) {
        let mut plan = plan.clone();
        let text = lab.fitting.write(&plan)?;
        if let Written::Patch { measured, .. } = &text
            && gain(measured.peaks.reserved, answer) < WORTH.min(gain(plan.peaks.reserved, answer))
        {
            let why = "a copy with the patch takes as much as the code as it is".to_owned();
            plan.written = Some(Written::InTheWay(vec![why]));
        } else if let Written::Patch { measured, .. } = &text {
            let (peaks, outcome) = (measured.peaks, measured.outcome.clone());
            return Ok(Some(Plan { peaks, outcome, written: Some(text), ..plan }));
        } else {
            plan.written = Some(text);
        }
        first = first.or(Some(plan));
    }
    Ok(first)
}

/// The part of the reserved peak that a plan takes away.
fn gain(reserved: u64, answer: &Answer) -> f64 {
    1.0 - reserved as f64 / answer.baseline.peaks.reserved.max(1) as f64
}

/// Of those that bring much the mildest, and of these the one with the lowest peak first; if none brings much, the one that
/// brings most. None of them is slow, and none trains something else.
fn best(answer: &Answer) -> Vec<&Plan> {
    let brings = |plan: &Plan| gain(plan.peaks.reserved, answer);
    let is_mild = |plan: &Plan| plan.label <= Label::ChangesStatistics && plan.cost_ratio <= SLOW;
    let mut open: Vec<&Plan> =
        answer.plans.iter().filter(|plan| is_mild(plan) && WORTH <= brings(plan)).collect();
    open.sort_by_key(|plan| {
        let is_little = brings(plan) < MUCH;
        let label = (!is_little).then_some(plan.label.max(Label::NumericallyEqual));
        (is_little, label, plan.peaks.reserved)
    });
    open
}
