//! `--ask`: what follows from the run, and the trials that measure it.

use anyhow::{Context, Result};
use diagnose::ask::{Change, Peaks};
use diagnose::{About, Answer, Try};
use fit::lever::{AMP_BF16, AMP_FP16};
use fit::plan::{Bench, Tried, most_checkpoints};
use fit::{Knob, Lever, Measured, Outcome};
use study::{Judgement, Run, Verdict};

use crate::cli::{CardArguments, RunArguments};
use crate::confined::Window;
use crate::fitting::Fitting;
use crate::progress::Progress;
use crate::runner::OnPhantom;
use crate::session;
use crate::settings::{Settings, Verify};
use crate::warm::Guard;

/// Cards from this compute capability on have bfloat16.
const BFLOAT16: (u32, u32) = (8, 0);

/// Answers all questions; where trials may be made, beside the run that was made then, they measure what they can.
pub(crate) fn answer(
    run: &mut Run,
    arguments: &RunArguments,
    settings: &Settings,
    ran: Option<Window>,
) {
    let Some(anatomy) = run.anatomy() else { return };
    let about = About { anatomy, findings: run.findings(), command: &arguments.command };
    let asked = arguments.ask.iter();
    let mut answers: Vec<Answer> = asked.map(|text| diagnose::ask(&about, text)).collect();
    let is_whole = matches!(run.verdict, Verdict::Fits | Verdict::Grew | Verdict::DoesNotFit);
    let wants = answers.iter().any(|answer| !answer.tries.is_empty());
    if let (Some(ran), true, true, None) = (ran, wants, is_whole, session::ending())
        && let Err(error) = try_all(&mut answers, arguments, settings, ran)
    {
        run.notes.push(format!("what was asked was not tried: {error:#}"));
    }
    run.answers = answers;
}

/// A plan of levers for an answer, or why there is none.
type Planned = std::result::Result<Vec<Lever>, String>;

fn try_all(
    answers: &mut [Answer],
    arguments: &RunArguments,
    settings: &Settings,
    ran: Window,
) -> Result<()> {
    let card = settings.card.clone().unwrap_or_else(gpus::unlimited);
    let guard = Guard { may_be_free: settings.verify == Verify::On, repeats: Some(ran) };
    let runner = OnPhantom::new(
        &arguments.command,
        Vec::new(),
        vec![card.clone()],
        settings.clone().for_trials(),
        true,
        Progress::new(arguments.quiet),
    )?
    .guarded(guard);
    let tries = answers.iter().flat_map(|answer| &answer.tries);
    let names = tries.filter_map(|what| match what {
        Try::Knob { name, .. } => Some(name),
        _ => None,
    });
    let knobs = names.filter_map(|name| Knob::new(name, None, &arguments.command).ok());
    let has_bfloat16 = BFLOAT16 <= card.compute_capability;
    let mut bench = Fitting::new(runner, knobs.collect(), card);
    try_changes(answers, &mut bench, has_bfloat16)?;
    for answer in answers.iter_mut() {
        if let [Try::Card(name)] = answer.tries.as_slice() {
            match on_card(&mut bench.runner, &name.clone(), arguments) {
                Ok(told) => {
                    *answer = Answer { effect: diagnose::Effect::Fact, why: told, ..answer.clone() }
                }
                Err(error) => answer.not_tried(&format!("{error:#}")),
            }
        }
    }
    Ok(())
}

/// Trials of all changes that levers or settings of the command can make, at once.
fn try_changes(answers: &mut [Answer], bench: &mut Fitting, has_bfloat16: bool) -> Result<()> {
    let is_change = |answer: &Answer| {
        !answer.tries.is_empty() && !answer.tries.iter().any(|what| matches!(what, Try::Card(_)))
    };
    let open: Vec<usize> = (0..answers.len()).filter(|at| is_change(&answers[*at])).collect();
    if open.is_empty() {
        return Ok(());
    }
    let mut chosen = None;
    let mut plans: Vec<Planned> = Vec::new();
    for &at in &open {
        let planned = plan(&answers[at].tries, bench, &mut chosen, has_bfloat16)?;
        plans.push(planned);
    }
    let made: Vec<Vec<Lever>> = plans.iter().filter_map(|plan| plan.clone().ok()).collect();
    let all: Vec<Vec<Lever>> = std::iter::once(Vec::new()).chain(made).collect();
    let mut tried = bench.try_all(&all)?.into_iter();
    let before = tried.next().context("a trial gave no answer")?.measured;
    for (at, plan) in open.into_iter().zip(plans) {
        let answer = &mut answers[at];
        match plan {
            Ok(_) => {
                let one = tried.next().context("a trial gave no answer")?;
                settle(answer, &before, &one);
            }
            Err(why) => answer.not_tried(&why),
        }
    }
    Ok(())
}

/// What the trial of a change gave.
fn settle(answer: &mut Answer, before: &Measured, tried: &Tried) {
    let not_applied = tried.facts.iter().find(|fact| !fact.applied);
    let peaks =
        |one: &Measured| Peaks { allocated: one.peaks.allocated, reserved: one.peaks.reserved };
    let after = &tried.measured;
    match (&before.outcome, &after.outcome) {
        _ if not_applied.is_some() => {
            let reason = not_applied.and_then(|fact| fact.reason.clone());
            answer.not_tried(&reason.unwrap_or_else(|| "it finds nothing to act on".to_owned()));
        }
        (Outcome::Failed(why), _) => answer.not_tried(&failed("as it is, without a limit,", why)),
        (_, Outcome::Failed(why)) => answer.not_tried(&failed("with the change", why)),
        (Outcome::NotRun, _) | (_, Outcome::NotRun) => {
            answer.not_tried("the trial was interrupted")
        }
        (Outcome::DoesNotFit, _) | (_, Outcome::DoesNotFit) => {
            answer.not_tried("a trial ran out of memory, though it had no limit");
        }
        _ => answer.measured(Change { before: peaks(before), after: peaks(after) }),
    }
}

fn failed(when: &str, why: &str) -> String {
    format!("the script fails {when} {}", why.lines().next().unwrap_or_default())
}

/// The levers of an answer.
fn plan(
    tries: &[Try],
    bench: &mut Fitting,
    chosen: &mut Option<Option<Lever>>,
    has_bfloat16: bool,
) -> Result<Planned> {
    let mut levers = Vec::new();
    for what in tries {
        levers.push(match what {
            Try::Lever(AMP_BF16) if !has_bfloat16 => Lever::Plain(AMP_FP16),
            Try::Lever(id) => Lever::Plain(id),
            Try::Checkpoint(modules) if modules.is_empty() => {
                if chosen.is_none() {
                    let step = bench.look(&[], &[])?.step;
                    *chosen = Some(step.as_ref().and_then(most_checkpoints));
                }
                match chosen.clone().flatten() {
                    Some(lever) => lever,
                    None => {
                        return Ok(Err(
                            "no modules whose checkpoints would help were found".to_owned()
                        ));
                    }
                }
            }
            Try::Checkpoint(modules) => Lever::Checkpoint(modules.clone()),
            Try::Freeze(modules) => Lever::Freeze(modules.clone()),
            Try::Accumulate(parts) => Lever::Accumulate(*parts),
            Try::Allocator(settings) => Lever::Allocator(settings.clone()),
            Try::Knob { name, value } => Lever::Knob { name: name.clone(), value: value.clone() },
            Try::Card(_) => return Ok(Err("a card is no change".to_owned())),
        });
    }
    Ok(Ok(levers))
}

/// The script as it is, on a card by name or by size.
fn on_card(runner: &mut OnPhantom, text: &str, arguments: &RunArguments) -> Result<String> {
    let is_size = text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with('B');
    let named = || CardArguments {
        gpu: Some(text.to_owned()),
        memory: None,
        used: arguments.card.used.clone(),
    };
    let sized = || CardArguments {
        gpu: arguments.card.gpu.clone().filter(|name| !name.contains(',') && name != "all"),
        memory: Some(text.to_owned()),
        used: arguments.card.used.clone(),
    };
    let meant = if is_size { sized() } else { named() }.meant()?.context("no card is named")?;
    let card = meant.card;
    let run =
        runner.run_on(std::slice::from_ref(&card))?.pop().context("a trial gave no answer")?;
    let has = format!("{} ({})", card.shown_title(), anatomy::bytes::text(card.memory_bytes));
    let takes = run.peak.as_ref().map_or(String::new(), |peak| {
        format!("; it took {} there, context included", anatomy::bytes::text(peak.device_bytes))
    });
    Ok(match run.judgement() {
        Judgement::Fits | Judgement::Needs => format!("yes: it fits {has}, by a run there{takes}"),
        Judgement::Tight => format!(
            "hardly: it went through on {has}, so near to its end that our own error could decide{takes}"
        ),
        Judgement::DoesNotFit => format!("no: it ran out of memory on {has}, by a run there"),
        Judgement::Depends => format!(
            "it went through on {has}, with what was assumed of values that nobody knows{takes}"
        ),
        other => format!("that is not known: on {has} the run ended as {}", other.name()),
    })
}
