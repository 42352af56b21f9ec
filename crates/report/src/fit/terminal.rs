//! The plans as text: the verdict, the plan to take and how, then the others.

use ::fit::plan::{Plan, Written};
use ::fit::{Lever, Outcome};

use anstyle::Style;

use super::patch::folded;
use super::{Fit, patch};
use crate::assumed::{condition, legend};
use crate::bytes;
use crate::lines::Lines;
use crate::reader::Reader;
use study::memory_text;

/// Labels of this answer have no style.
const PLAIN_LABEL: Style = Style::new();

/// Plans that are listed.
const SHOWN: usize = 12;

/// Causes that are listed.
const CAUSES: usize = 4;

/// Why smaller batches change more than rounding.
const MEANS: &str = "the loss is a mean over targets that are not ignored: of smaller batches it is a mean of means, \
                     which gives those with few targets as much weight as the others";

/// Half precision, which most people would take.
const HALF: [&str; 2] = [::fit::lever::AMP_BF16, ::fit::lever::AMP_FP16];

/// Characters of a plan's name.
const NAME: usize = 60;

/// The whole answer.
pub fn terminal(fit: &Fit, reader: Reader) -> String {
    let answer = &fit.answer;
    let mut lines = Lines::new(reader);
    verdict(fit, reader, &mut lines);
    if let Outcome::Failed(why) = &answer.baseline.outcome {
        // The first line is the verdict's; the others are what the script printed last.
        lines.section(PLAIN_LABEL, "printed", why.lines().skip(1));
    }
    if let Some(plan) = answer.chosen.map(|index| &answer.plans[index]) {
        lines.section(PLAIN_LABEL, "do", patch(fit, plan).lines());
        if matches!(plan.written, Some(Written::Patch { .. })) {
            let seen = "this was applied to a copy, which was run: the numbers are its own (`--write` applies it)";
            lines.section(PLAIN_LABEL, "patch", [seen]);
        }
        lines.section(PLAIN_LABEL, "cost", [format!("{}, {}", plan.label, cost(plan))]);
        if plan.facts.iter().any(|fact| fact.means_of_means) {
            lines.section(PLAIN_LABEL, "note", [MEANS]);
        }
    } else if let (false, Some(plan)) =
        (answer.as_it_is.fits(), answer.proposed.map(|index| &answer.plans[index]))
    {
        let state = format!(
            "weights, gradients and the optimizer's state take {} by themselves: no smaller batch helps",
            bytes::text(answer.state)
        );
        lines.section(PLAIN_LABEL, "state", [state]);
        let is_allowed =
            if needs_more(plan) { "" } else { "; `--allow training` chooses among such plans" };
        let needs = needs(fit, plan.peaks.reserved);
        let with = format!("{needs} with {} ({}){is_allowed}", name(plan), plan.label);
        lines.section(PLAIN_LABEL, "propose", [with]);
        lines.section(PLAIN_LABEL, "do", patch(fit, plan).lines());
    } else if let (false, Some(index)) = (answer.as_it_is.fits(), answer.tightest) {
        let plan = &answer.plans[index];
        let tightest = format!(
            "{} without a limit, with {}; the card itself runs out of memory with it",
            needs(fit, plan.peaks.reserved),
            name(plan),
        );
        lines.section(PLAIN_LABEL, "tightest", [tightest]);
        if fit.trials.unfinished.is_none() {
            let or = "a smaller batch, model or input: name its flag with --set and --vary";
            lines.section(PLAIN_LABEL, "or", [or]);
        }
    }
    lines.section(PLAIN_LABEL, "causes", causes(fit));
    table(fit, &mut lines);
    if let Some(places) = &fit.trials.unknown_places {
        lines.section(PLAIN_LABEL, "note", [legend(places)]);
    }
    for (lever, reason) in &answer.not_applicable {
        lines.section(PLAIN_LABEL, "not", [format!("{lever}: {reason}")]);
    }
    fit.trials.close(&mut lines);
    lines.text()
}

/// What a run takes where there is room, with the context, as text: the number that `run` calls so, too. What it needs is
/// found by more runs, which plans are not worth.
fn needs(fit: &Fit, reserved: u64) -> String {
    bytes::text(reserved + fit.context_bytes)
}

fn verdict(fit: &Fit, reader: Reader, lines: &mut Lines) {
    let answer = &fit.answer;
    let memory = format!("{} with {}", fit.card, memory_text(fit.memory_bytes, fit.used_bytes));
    let base = needs(fit, answer.baseline.peaks.reserved);
    let (style, word, sentence) = match (&answer.baseline.outcome, &answer.as_it_is, answer.chosen)
    {
        (Outcome::Failed(why), ..) => {
            (reader.bad, "SCRIPT FAILED", why.lines().next().unwrap_or_default().to_owned())
        }
        _ if fit.trials.unfinished.is_some() => {
            (reader.bad, "INTERRUPTED", unfinished(fit, &memory, &base))
        }
        (_, Outcome::Fits, _) => (
            reader.good,
            "FITS AS IT IS",
            format!("{memory}: the run takes {base} if there is room"),
        ),
        (_, Outcome::FitsIf, _) => {
            let condition = condition(fit.trials.unknown_places.as_deref());
            let sentence = format!("{condition}: {memory}: as it is, the run takes {base}");
            (reader.label, "FITS IF", sentence)
        }
        (_, _, Some(index)) => {
            let plan = &answer.plans[index];
            let new = needs(fit, plan.peaks.reserved);
            let sentence =
                format!("{memory}: {base} as it is, without a limit; {new} with {}", name(plan));
            match plan.outcome {
                Outcome::FitsIf => {
                    let condition = condition(fit.trials.unknown_places.as_deref());
                    (reader.label, "FITS WITH A PLAN IF", format!("{condition}: {sentence}"))
                }
                _ => (reader.good, "FITS WITH A PLAN", sentence),
            }
        }
        _ => {
            let unless = match answer.proposed {
                Some(index) if needs_more(&answer.plans[index]) => {
                    ", unless there are more such GPUs"
                }
                Some(_) => ", unless the training may change",
                None => "",
            };
            let sentence = format!(
                "{memory} runs out of it{unless}; as it is, the run takes {base} without a limit"
            );
            (reader.bad, "NO PLAN FITS", sentence)
        }
    };
    lines.answer(style, word, &sentence);
}

/// `by SIGINT after 40 s: 5 trials for … had ended`.
fn unfinished(fit: &Fit, memory: &str, base: &str) -> String {
    let how = fit.trials.unfinished.as_ref().map(study::Unfinished::how).unwrap_or_default();
    let as_it_is = match fit.answer.baseline.outcome {
        Outcome::NotRun => "not even the script as it is was run to its end".to_owned(),
        _ => format!("the run takes {base} as it is, without a limit; not all plans were tried"),
    };
    format!("{how}, {memory}: {as_it_is}")
}

/// What the peak consists of; where no plan fits, with what is left to do by hand.
fn causes(fit: &Fit) -> Vec<String> {
    let answer = &fit.answer;
    let (mut rows, mut said) = (Vec::new(), Vec::new());
    for cause in answer.causes.iter().take(CAUSES) {
        rows.push(format!("{:>10}  {}", bytes::text(cause.bytes), cause.title));
        let is_tried = |id: &str| {
            answer.plans.iter().any(|plan| plan.levers.iter().any(|lever| lever.id() == id))
        };
        let by_hand = cause.remedies.iter().filter(|(id, _)| !is_tried(id) && !needs_consent(id));
        // What was not tried yet need not be done by hand.
        let is_open =
            answer.chosen.is_none() && !answer.as_it_is.fits() && fit.trials.unfinished.is_none();
        for (_, change) in by_hand.filter(|_| is_open) {
            if !said.contains(&change) {
                rows.push(format!("{:>10}  by hand: {change}", ""));
                said.push(change);
            }
        }
    }
    rows
}

/// Whether it is a lever that was left out because it changes the training.
fn needs_consent(id: &str) -> bool {
    diagnose::remedies::find(id).is_some_and(|row| row.lever.is_some() && row.label.needs_consent())
}

/// Whether it is for more GPUs than this one.
fn needs_more(plan: &Plan) -> bool {
    plan.levers.iter().any(|lever| matches!(lever, Lever::Shard(_)))
}

/// Levers in words.
fn name(plan: &Plan) -> String {
    let word = |lever: &Lever| match lever {
        Lever::Checkpoint(modules) => format!("checkpoint {}", folded(modules).join(" ")),
        Lever::Selective(modules) => {
            format!("selective checkpoint {}", folded(modules).join(" "))
        }
        Lever::Freeze(modules) => format!("freeze {}", folded(modules).join(" ")),
        Lever::Accumulate(parts) => format!("accumulate ×{parts}"),
        Lever::Allocator(settings) => settings.clone(),
        Lever::Knob { name, value } => format!("{name}={value}"),
        Lever::Shard(count) => format!("FSDP on {count} GPUs"),
        Lever::Own(own) => own.shown.clone(),
        Lever::Plain(id) => (*id).to_owned(),
    };
    let whole = plan.levers.iter().map(word).collect::<Vec<_>>().join(" + ");
    match whole.chars().count() <= NAME {
        true => whole,
        false => whole.chars().take(NAME - 1).chain(['…']).collect(),
    }
}

fn cost(plan: &Plan) -> String {
    let percent = 100.0 * (plan.cost_ratio - 1.0);
    match (plan.cost_ratio <= 1.0, is_uncounted(plan)) {
        (true, true) => "the last layer's forward pass twice, which is not counted".to_owned(),
        (true, false) => "no extra time".to_owned(),
        (false, true) => format!("at least {percent:.0} % more time a step (modelled)"),
        (false, false) => format!("{percent:.0} % more time a step (modelled)"),
    }
}

/// The backward pass of a loss in parts computes the logits of each part again; nobody knows how many operations that is.
fn is_uncounted(plan: &Plan) -> bool {
    plan.levers.iter().any(|lever| lever.id() == "linear-cross-entropy")
}

fn table(fit: &Fit, lines: &mut Lines) {
    let plans = &fit.answer.plans;
    if plans.is_empty() {
        return;
    }
    lines.add(&format!(
        "{:9}{:>10}  {:>10}  {:>6}  {:20} plan",
        "plans", "needs", "headroom", "cost", "label"
    ));
    // What fits comes first, as it would be chosen; then what comes nearest.
    let mut shown: Vec<&Plan> = plans.iter().filter(|plan| plan.outcome.fits()).collect();
    let mut others: Vec<&Plan> = plans.iter().filter(|plan| !plan.outcome.fits()).collect();
    others.sort_by_key(|plan| plan.peaks.reserved);
    shown.extend(others);
    let all = shown.len();
    let shown = one_of_each_kind(shown);
    for plan in shown.iter().take(SHOWN) {
        let needs = plan.peaks.reserved + fit.context_bytes;
        let room = fit.available_bytes();
        let headroom = match needs <= room {
            true => bytes::text(room - needs),
            false => format!("-{}", bytes::text(needs - room)),
        };
        let sign = if is_uncounted(plan) { '≥' } else { '+' };
        let cost = format!("{sign}{:.0} %", 100.0 * (plan.cost_ratio - 1.0));
        lines.add(&format!(
            "{:9}{:>10}  {headroom:>10}  {cost:>6}  {:20} {}",
            match plan.outcome {
                Outcome::Fits => "fits",
                Outcome::FitsIf => "fits if",
                _ => "",
            },
            bytes::text(needs),
            plan.label.name(),
            name(plan)
        ));
    }
    let more = all - shown.len().min(SHOWN);
    if more != 0 {
        lines.add(&format!("{:9}… {more} more (see --json)", ""));
    }
}

/// The first of the plans that differ only in how much of a lever they take; half precision by itself is always there.
fn one_of_each_kind(plans: Vec<&Plan>) -> Vec<&Plan> {
    let kind = |plan: &Plan| {
        let mut ids: Vec<String> = plan.levers.iter().map(|it| it.id().to_owned()).collect();
        ids.sort_unstable();
        ids
    };
    let mut kept: Vec<&Plan> = Vec::new();
    for plan in plans {
        if kept.iter().all(|other| kind(other) != kind(plan)) {
            kept.push(plan);
        }
    }
    let is_half =
        |plan: &&Plan| matches!(plan.levers.as_slice(), [Lever::Plain(id)] if HALF.contains(id));
    if let Some(at) = kept.iter().position(is_half).filter(|at| SHOWN <= *at) {
        let half = kept.remove(at);
        kept.insert(SHOWN - 1, half);
    }
    kept
}
