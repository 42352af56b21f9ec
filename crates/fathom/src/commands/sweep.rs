//! `fathom sweep`.

use std::time::Instant;

use anyhow::Result;
use fit::largest::Search;
use fit::scaling::{self, Causes};
use fit::{Outcome, Target, grid};
use report::sweep::{Row, Sweep, SweptCard};

use crate::cache;
use crate::cli::{CardsArguments, SweepArguments};
use crate::error::Hinted;
use crate::outcome::UNFINISHED;
use crate::outputs::Outputs;
use crate::page;
use crate::progress::Progress;
use crate::runner::OnPhantom;
use crate::screen;
use crate::settings::Settings;
use crate::shard::Shard;
use crate::vary::{Vary, WORLD_SIZE, knobs, read_vary, shown};

/// Memories that are tried when no card is named, in GiB.
const MEMORIES: [u64; 7] = [8, 12, 16, 24, 32, 48, 80];

/// Tries values on cards and says which fit.
pub(crate) fn sweep(arguments: &SweepArguments) -> Result<u8> {
    let began = Instant::now();
    let trial = &arguments.trial;
    let page = arguments.page.as_deref();
    let mut outputs = Outputs::check(&[("--json", trial.json.as_deref()), ("--page", page)])?;
    let varied = arguments.vary.iter().map(|text| read_vary(text)).collect::<Result<Vec<_>>>()?;
    let names: Vec<&str> = varied.iter().map(|(name, _)| name.as_str()).collect();
    let knobs = knobs(&names, trial)?;
    let (catalogue, understood) = cards(&arguments.cards)?;
    let shard = shard(arguments, &varied)?;
    let mut runner = OnPhantom::new(
        &trial.command,
        knobs,
        catalogue.clone(),
        Settings::resolve(&trial.into())?.for_trials(),
        !trial.fresh,
        Progress::new(trial.quiet),
    )?
    .in_world(trial.world_size)
    .shared(shard, rows(&varied));
    let cards = questions(&catalogue);
    let mut answer = Sweep {
        knobs: varied
            .iter()
            .map(|(name, vary)| report::sweep::Knob { name: name.clone(), values: shown(vary) })
            .collect(),
        cards: catalogue.iter().map(SweptCard::new).collect(),
        shard: shard.map(|Shard { number, count }| report::sweep::Shard { number, count }),
        ..Sweep::default()
    };
    match varied.iter().filter(|(_, vary)| matches!(vary, Vary::Range(_))).count() {
        0 => fill_matrix(&mut answer, &mut runner, &varied, &cards)?,
        1 => search(&mut answer, &mut runner, &varied, &cards)?,
        _ => {
            return Err(Hinted::error(
                "only one `--vary` can be a range",
                "give values for the other, as `--vary batch=8,16,32`",
            ));
        }
    }
    along_knobs(&mut answer);
    if arguments.causes && runner.unfinished(began).is_none() {
        add_causes(&mut answer, &mut runner)?;
    }
    let notes = notes(&answer, &runner).into_iter().chain(used_note(&catalogue)).chain(understood);
    answer.trials = runner.trials(began, notes.collect());
    drop(runner);
    if let Some(path) = page {
        outputs.file(path, page::of_trials(&report::sweep::json(&answer)));
    }
    if outputs.json(trial.json.as_deref(), || report::sweep::json(&answer)) {
        outputs.print(&report::sweep::terminal(&answer, screen::reader()));
    }
    Ok(outputs.finish(exit_code(&answer)))
}

/// How the peak grows with each knob, and the smallest world that fits.
fn along_knobs(answer: &mut Sweep) {
    let names: Vec<&str> = answer.knobs.iter().map(|knob| knob.name.as_str()).collect();
    let each = names.iter().enumerate();
    let scaling = each.filter_map(|(at, knob)| scaling::of_peak(knob, at, &answer.points));
    let worlds = names.iter().position(|name| *name == WORLD_SIZE);
    let fewest = worlds.map(|at| scaling::fewest(&names, at, &answer.points));
    (answer.scaling, answer.fewest) = (scaling.collect(), fewest.unwrap_or_default());
}

/// Runs a few values of each knob again with the recorder, the other knobs as in the first run: how causes grow is
/// measured, never assumed.
fn add_causes(answer: &mut Sweep, runner: &mut OnPhantom) -> Result<()> {
    for (at, knob) in answer.knobs.iter().enumerate() {
        let values = scaling::values_to_record(at, &answer.points);
        let runs = runner.record_each(&values)?;
        let of_run = |(values, run): (&Vec<String>, study::Run)| -> Option<Causes> {
            let anatomy = run.anatomy()?;
            let whole = anatomy.allocated_peak.allocated;
            Some((values[at].parse().ok()?, diagnose::bytes_by_cause(anatomy), whole))
        };
        let line: Vec<Causes> = values.iter().zip(runs).filter_map(of_run).collect();
        let after = answer.scaling.iter().rposition(|scaling| scaling.knob == knob.name);
        let place = after.map_or(answer.scaling.len(), |index| index + 1);
        answer.scaling.splice(place..place, scaling::of_causes(&knob.name, &line));
    }
    Ok(())
}

fn exit_code(answer: &Sweep) -> u8 {
    let failed = |point: &grid::Point| matches!(point.outcome, Outcome::Failed(_));
    let mut ran = answer.points.iter().filter(|point| point.outcome != Outcome::NotRun).peekable();
    match () {
        () if answer.trials.unfinished.is_some() => UNFINISHED as u8,
        () if ran.peek().is_some() && ran.all(failed) => 3,
        () => 0,
    }
}

/// What others hold, if they hold something.
fn used_note(cards: &[gpus::Card]) -> Option<String> {
    let most = cards.iter().map(|card| card.used_bytes).max().filter(|bytes| *bytes != 0)?;
    let each = if cards.iter().all(|card| card.used_bytes == most) { "" } else { "up to " };
    Some(format!("{each}{} of each card are in use by others", report::bytes::text(most)))
}

/// The cards to try, and how their sizes were understood.
fn cards(typed: &CardsArguments) -> Result<(Vec<gpus::Card>, Vec<String>)> {
    let names_none = typed.gpu.is_empty() && typed.memory.is_empty();
    let usual = || MEMORIES.iter().map(|gib| format!("{gib}GiB")).collect();
    let memory = if names_none { usual() } else { typed.memory.clone() };
    CardsArguments { memory, ..typed.clone() }.meant()
}

/// Cards that differ in memory alone are of one kind.
pub(crate) fn questions(cards: &[gpus::Card]) -> Vec<Target> {
    let alike = |card: &gpus::Card| (card.compute_capability, card.sm_count, card.l2_bytes);
    let question = |card: &gpus::Card| Target {
        name: card.name.to_owned(),
        usable_bytes: card.usable_bytes(),
        context_bytes: card.context_bytes,
        kind: cards.iter().position(|other| alike(other) == alike(card)).unwrap_or(0),
    };
    cards.iter().map(question).collect()
}

fn fill_matrix(
    answer: &mut Sweep,
    runner: &mut OnPhantom,
    varied: &[(String, Vary)],
    cards: &[Target],
) -> Result<()> {
    answer.points = grid::matrix(runner, &values(varied), cards)?;
    Ok(())
}

fn values(varied: &[(String, Vary)]) -> Vec<Vec<String>> {
    varied.iter().map(|(_, vary)| shown(vary)).collect()
}

/// Every combination, as rows of the table are numbered.
fn rows(varied: &[(String, Vary)]) -> Vec<Vec<String>> {
    grid::combinations(&values(varied))
}

/// `--shard`, if trials can be shared at all.
fn shard(arguments: &SweepArguments, varied: &[(String, Vary)]) -> Result<Option<Shard>> {
    let Some(shard) = arguments.shard.as_deref().map(Shard::read).transpose()? else {
        return Ok(None);
    };
    let refused = |why: String, hint: &str| Err(Hinted::error(why, hint));
    if let Some((name, _)) = varied.iter().find(|(_, vary)| matches!(vary, Vary::Range(_))) {
        return refused(
            format!("the range of `{name}` is searched step by step, which jobs cannot share"),
            "name the values, as in `--vary batch=8,16,32`, or leave `--shard` out",
        );
    }
    if arguments.causes {
        return refused(
            "`--causes` needs rows of all shards".to_owned(),
            "ask for them when all have run, without `--shard`",
        );
    }
    if arguments.trial.fresh {
        return refused(
            "`--fresh` remembers nothing, and shards share what is remembered".to_owned(),
            "to begin anew, set `FATHOM_CACHE` to an empty folder that all jobs see",
        );
    }
    cache::shared_folder().map(|_| Some(shard))
}

/// The largest value of the knob with a range, for each combination of the others.
fn search(
    answer: &mut Sweep,
    runner: &mut OnPhantom,
    varied: &[(String, Vary)],
    cards: &[Target],
) -> Result<()> {
    let searched = varied.iter().position(|(_, vary)| matches!(vary, Vary::Range(_)));
    let Some((at, Vary::Range(range))) = searched.map(|at| (at, &varied[at].1)) else {
        return Ok(());
    };
    let others: Vec<(&String, Vec<String>)> = varied
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != at)
        .map(|(_, (name, vary))| (name, shown(vary)))
        .collect();
    let combinations =
        others.iter().fold(vec![Vec::new()], |all: Vec<Vec<String>>, (_, values)| {
            all.iter()
                .flat_map(|start| {
                    values
                        .iter()
                        .map(move |value| [start.as_slice(), std::slice::from_ref(value)].concat())
                })
                .collect()
        });
    for combination in combinations {
        let values = |x: i64| {
            let mut values = combination.clone();
            values.insert(at, x.to_string());
            values
        };
        let mut kinds: Vec<usize> = cards.iter().map(|card| card.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let mut search = Search::new(runner, *range, &values);
            let of_kind: Vec<(usize, &Target)> =
                cards.iter().enumerate().filter(|(_, card)| card.kind == kind).collect();
            for &(index, card) in &of_kind {
                let largest = search.largest(index, card)?;
                let names = others.iter().map(|(name, _)| (*name).clone());
                let row = Row {
                    knob: varied[at].0.clone(),
                    others: names.zip(combination.clone()).collect(),
                    largest,
                };
                answer.largest.push(row);
            }
            answer.points.extend(search.points(&of_kind));
        }
    }
    answer.largest.sort_by_key(|row| row.largest.card);
    Ok(())
}

fn notes(answer: &Sweep, runner: &OnPhantom) -> Vec<String> {
    let mut notes = Vec::new();
    let fits: Vec<_> =
        answer.points.iter().filter(|point| point.outcome.fits() && point.card == 0).collect();
    let is_flat = 1 < fits.len() && fits.iter().all(|point| point.peaks == fits[0].peaks);
    if is_flat {
        let names: Vec<&str> = answer.knobs.iter().map(|knob| knob.name.as_str()).collect();
        notes.push(format!(
            "the peak is the same for all values of {}: is that how the script is told?",
            names.join(", ")
        ));
    }
    if let Some(Outcome::Failed(why)) = answer
        .points
        .iter()
        .map(|point| &point.outcome)
        .find(|outcome| matches!(outcome, Outcome::Failed(_)))
    {
        notes.push(format!("a trial failed for another reason: {why}"));
    }
    if runner.is_in_world() || answer.knobs.iter().any(|knob| knob.name == WORLD_SIZE) {
        notes.push(
            "rank 0 of each world was run, NCCL's memory (modelled) included; `fathom run --ranks` compares ranks"
                .to_owned(),
        );
    }
    if runner.is_cold() {
        notes.push(
            "each trial starts Python anew: only `python script.py` and `python -m` can be kept warm, and only \
             if no file of yours has the name of a module that torch imports"
                .to_owned(),
        );
    }
    let unshared = runner.counts.unshared;
    if answer.shard.is_some() && unshared != 0 {
        notes.push(format!(
            "not remembered of what this shard ran: {unshared}; other shards do not see that, and a sweep without \
             `--shard` runs it again"
        ));
    }
    notes.extend(runner.counts.notes());
    notes
}
