//! The plans as text: the verdict, the plan to take and how, then the others.

use ::fit::lever::PLAIN;
use ::fit::plan::Plan;
use ::fit::{Lever, Verdict};

use super::patch::folded;
use super::{Fit, patch};
use crate::bytes;
use crate::terminal::Palette;

/// Plans that are listed.
const SHOWN: usize = 12;

/// Causes that are listed.
const CAUSES: usize = 4;

/// Characters of a plan's name.
const NAME: usize = 60;

/// The whole answer.
pub fn terminal(fit: &Fit, palette: Palette) -> String {
    let answer = &fit.answer;
    let needs = |reserved: u64| bytes::text(reserved + fit.context_bytes);
    let (good, bad) = (palette.good, palette.bad);
    let memory = format!("{} with {}", fit.card, bytes::text(fit.memory_bytes));
    let base = needs(answer.baseline.peaks.reserved);
    let mut text = match (&answer.baseline.verdict, answer.fits, answer.chosen) {
        (Verdict::Failed(why), ..) => {
            return format!(
                "{bad}SCRIPT FAILED{bad:#}  {}\n",
                why.lines().next().unwrap_or_default()
            );
        }
        (_, true, _) => format!("{good}FITS AS IT IS{good:#}  {memory}: the run needs {base}\n"),
        (_, _, Some(index)) => {
            let plan = &answer.plans[index];
            let new = needs(plan.peaks.reserved);
            format!(
                "{good}FITS WITH A PLAN{good:#}  {memory}: {base} as it is, {new} with {}\n",
                name(plan)
            )
        }
        _ => format!("{bad}NO PLAN FITS{bad:#}  {memory}: the run needs {base} as it is\n"),
    };
    if let Some(plan) = answer.chosen.map(|index| &answer.plans[index]) {
        text += &rows("do", &patch(fit, plan));
        text += &format!("{:9}{}, {}\n", "cost", plan.label, cost(plan));
    } else if let (false, Some(index)) = (answer.fits, answer.tightest) {
        let plan = &answer.plans[index];
        let missing = (plan.peaks.reserved + fit.context_bytes).saturating_sub(fit.memory_bytes);
        text += &format!(
            "{:9}{} with {}: {} are missing\n",
            "tightest",
            needs(plan.peaks.reserved),
            name(plan),
            bytes::text(missing)
        );
        text += &format!(
            "{:9}a smaller batch, model or input: name its flag with --set and --vary\n",
            "or"
        );
    }
    text += &causes(fit);
    text += &table(fit);
    for (lever, reason) in &answer.not_applicable {
        text += &format!("{:9}{lever}: {reason}\n", "not");
    }
    text += &format!("{:9}{} run, {:.1} s\n", "trials", fit.run, fit.wall_seconds);
    fit.notes.iter().fold(text, |text, note| text + &format!("{:9}{note}\n", "note"))
}

/// What the peak consists of; where no plan fits, with what is left to do by hand.
fn causes(fit: &Fit) -> String {
    let answer = &fit.answer;
    let (mut text, mut said) = (String::new(), Vec::new());
    for (label, cause) in
        std::iter::once("causes").chain(std::iter::repeat("")).zip(&answer.causes).take(CAUSES)
    {
        text += &format!("{label:9}{:>10}  {}\n", bytes::text(cause.bytes), cause.title);
        let is_tried = |id: &str| {
            answer.plans.iter().any(|plan| plan.levers.iter().any(|lever| lever.id() == id))
        };
        let by_hand = cause.remedies.iter().filter(|(id, _)| !is_tried(id) && !needs_consent(id));
        for (_, change) in by_hand.filter(|_| answer.chosen.is_none() && !answer.fits) {
            if !said.contains(&change) {
                text += &format!("{:9}{:>10}  by hand: {change}\n", "", "");
                said.push(change);
            }
        }
    }
    text
}

/// Whether it is a lever that was left out because it changes the training.
fn needs_consent(id: &str) -> bool {
    id == "freeze" || PLAIN.iter().any(|row| row.0 == id && row.1.needs_consent())
}

/// A block of lines under a label.
fn rows(label: &str, block: &str) -> String {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    labels.zip(block.lines()).map(|(label, line)| format!("{label:9}{line}\n")).collect()
}

/// Levers in words.
fn name(plan: &Plan) -> String {
    let word = |lever: &Lever| match lever {
        Lever::Checkpoint(modules) => format!("checkpoint {}", folded(modules).join(" ")),
        Lever::Freeze(modules) => format!("freeze {}", folded(modules).join(" ")),
        Lever::Accumulate(parts) => format!("accumulate ×{parts}"),
        Lever::Allocator(settings) => settings.clone(),
        Lever::Knob { name, value } => format!("{name}={value}"),
        Lever::Plain(id) => (*id).to_owned(),
    };
    let whole = plan.levers.iter().map(word).collect::<Vec<_>>().join(" + ");
    match whole.chars().count() <= NAME {
        true => whole,
        false => whole.chars().take(NAME - 1).chain(['…']).collect(),
    }
}

fn cost(plan: &Plan) -> String {
    match plan.cost_ratio <= 1.0 {
        true => "no extra time".to_owned(),
        false => format!("{:.0} % more time a step (modelled)", 100.0 * (plan.cost_ratio - 1.0)),
    }
}

fn table(fit: &Fit) -> String {
    let plans = &fit.answer.plans;
    if plans.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "{:9}{:>10}  {:>10}  {:>6}  {:20} plan\n",
        "plans", "needs", "headroom", "cost", "label"
    );
    // What fits comes first, as it would be chosen; then what comes nearest.
    let mut shown: Vec<&Plan> = plans.iter().filter(|plan| plan.fits).collect();
    let mut others: Vec<&Plan> = plans.iter().filter(|plan| !plan.fits).collect();
    others.sort_by_key(|plan| plan.peaks.reserved);
    shown.extend(others);
    for plan in shown.iter().take(SHOWN) {
        let needs = plan.peaks.reserved + fit.context_bytes;
        let headroom = match needs <= fit.memory_bytes {
            true => bytes::text(fit.memory_bytes - needs),
            false => format!("-{}", bytes::text(needs - fit.memory_bytes)),
        };
        let cost = format!("+{:.0} %", 100.0 * (plan.cost_ratio - 1.0));
        text += &format!(
            "{:9}{:>10}  {headroom:>10}  {cost:>6}  {:20} {}\n",
            if plan.fits { "fits" } else { "" },
            bytes::text(needs),
            plan.label.name(),
            name(plan)
        );
    }
    if SHOWN < shown.len() {
        text += &format!("{:9}… {} more (see --json)\n", "", shown.len() - SHOWN);
    }
    text
}
