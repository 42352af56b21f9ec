//! `fathom sweep`.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use fit::largest::Search;
use fit::{Card, Verdict, grid};
use report::Palette;
use report::sweep::{Row, Sweep};

use crate::along::{fewest, scaling};
use crate::cache::Cache;
use crate::cli::{RunArguments, SweepArguments, TrialArguments};
use crate::error::Hinted;
use crate::growth;
use crate::launch::cache_folder;
use crate::progress::Progress;
use crate::runner::OnPhantom;
use crate::settings::{Settings, find_card, size};
use crate::vary::{Vary, WORLD_SIZE, knobs, read_vary, shown};

/// Memories that are tried when no card is named, in GiB.
const MEMORIES: [u64; 7] = [8, 12, 16, 24, 32, 48, 80];

/// Tries values on cards and says which fit.
pub(crate) fn sweep(arguments: &SweepArguments) -> Result<u8> {
    let began = Instant::now();
    let trial = &arguments.trial;
    let varied = arguments.vary.iter().map(|text| read_vary(text)).collect::<Result<Vec<_>>>()?;
    let names: Vec<&str> = varied.iter().map(|(name, _)| name.as_str()).collect();
    let knobs = knobs(&names, trial)?;
    let catalogue = cards(&arguments.gpu, &arguments.memory)?;
    let mut runner = OnPhantom::new(
        &trial.command,
        knobs,
        catalogue.clone(),
        settings(trial)?,
        cache(trial),
        Progress::new(trial.quiet),
    )?
    .in_world(trial.world_size);
    let cards = questions(&catalogue);
    let mut answer = Sweep {
        knobs: varied
            .iter()
            .map(|(name, vary)| report::sweep::Knob { name: name.clone(), values: shown(vary) })
            .collect(),
        cards: catalogue.iter().map(card_of).collect(),
        ..Sweep::default()
    };
    match varied.iter().filter(|(_, vary)| matches!(vary, Vary::Range(_))).count() {
        0 => fill_matrix(&mut answer, &mut runner, &varied, &cards)?,
        1 => search(&mut answer, &mut runner, &varied, &cards)?,
        _ => {
            return Err(Hinted::error(
                "two knobs have a range",
                "search one: give values for the other",
            ));
        }
    }
    answer.scaling = scaling(&answer);
    answer.fewest = fewest(&answer);
    if arguments.causes {
        growth::add_causes(&mut answer, &mut runner)?;
    }
    (answer.run, answer.remembered) = runner.counts;
    answer.wall_seconds = began.elapsed().as_secs_f64();
    answer.notes = notes(&answer, &runner);
    drop(runner);
    show(&answer, trial.json.as_deref())?;
    let failed = |point: &grid::Point| matches!(point.verdict, Verdict::Failed(_));
    Ok(if answer.points.iter().all(failed) && !answer.points.is_empty() { 3 } else { 0 })
}

/// The settings of a run with these steps and limits; the card is each trial's own.
pub(crate) fn settings(trial: &TrialArguments) -> Result<Settings> {
    let flags =
        RunArguments { steps: trial.steps, timeout: trial.timeout, ..RunArguments::default() };
    let settings = Settings::resolve(&flags)?;
    Ok(Settings { card: None, budget: None, ..settings })
}

/// Where answers are remembered, unless they are not wanted.
pub(crate) fn cache(trial: &TrialArguments) -> Option<Cache> {
    (!trial.fresh).then(|| Cache::new(cache_folder().join("trials")))
}

fn cards(names: &[String], memories: &[String]) -> Result<Vec<gpus::Card>> {
    if !names.is_empty() {
        return names.iter().map(|name| find_card(name.trim()).cloned()).collect();
    }
    let sizes = match memories.is_empty() {
        true => MEMORIES.iter().map(|gib| gib << 30).collect(),
        false => memories.iter().map(|text| size(text)).collect::<Result<Vec<u64>>>()?,
    };
    Ok(sizes.into_iter().map(|bytes| gpus::unlimited().with_memory(bytes)).collect())
}

fn card_of(card: &gpus::Card) -> report::sweep::Card {
    let name = match card.memory_known {
        gpus::Known::Given => report::bytes::text(card.memory_bytes).replace(".00", ""),
        _ => card.name.to_owned(),
    };
    report::sweep::Card { name, memory_bytes: card.memory_bytes, context_bytes: card.context_bytes }
}

/// Cards that differ in memory alone are of one kind.
pub(crate) fn questions(cards: &[gpus::Card]) -> Vec<Card> {
    let alike = |card: &gpus::Card| (card.compute_capability, card.sm_count, card.l2_bytes);
    let question = |card: &gpus::Card| Card {
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
    cards: &[Card],
) -> Result<()> {
    let values: Vec<Vec<String>> = varied.iter().map(|(_, vary)| shown(vary)).collect();
    answer.points = grid::matrix(runner, &values, cards)?;
    Ok(())
}

/// The largest value of the knob with a range, for each combination of the others.
fn search(
    answer: &mut Sweep,
    runner: &mut OnPhantom,
    varied: &[(String, Vary)],
    cards: &[Card],
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
            for (index, card) in cards.iter().enumerate().filter(|(_, card)| card.kind == kind) {
                let largest = search.largest(index, card)?;
                let names = others.iter().map(|(name, _)| (*name).clone());
                let row = Row {
                    knob: varied[at].0.clone(),
                    others: names.zip(combination.clone()).collect(),
                    largest,
                };
                answer.largest.push(row);
            }
            answer.points.extend(points(&search, cards, kind, &values));
        }
    }
    answer.largest.sort_by_key(|row| row.largest.card);
    Ok(())
}

/// What the search ran, as points: without a limit it answers where the memory is clear.
fn points(
    search: &Search<'_, OnPhantom>,
    cards: &[Card],
    kind: usize,
    values: &dyn Fn(i64) -> Vec<String>,
) -> Vec<grid::Point> {
    let mut points = Vec::new();
    for (x, measured) in search.needs() {
        for (index, card) in cards.iter().enumerate().filter(|(_, card)| card.kind == kind) {
            let own = search
                .on_card()
                .find(|(of, at, _)| (*of, *at) == (index, x))
                .map(|(_, _, measured)| measured);
            let verdict = match (&measured.verdict, own) {
                (_, Some(own)) => Some(own.verdict.clone()),
                (Verdict::Fits, None) => fit::trial::verdict_for(card, &measured.peaks),
                (other, None) => Some(other.clone()),
            };
            let peaks = own.unwrap_or(measured).peaks;
            points.extend(verdict.map(|verdict| grid::Point {
                values: values(x),
                card: index,
                verdict,
                peaks,
                how: grid::How::Run,
            }));
        }
    }
    points
}

fn notes(answer: &Sweep, runner: &OnPhantom) -> Vec<String> {
    let mut notes = Vec::new();
    let fits: Vec<_> = answer
        .points
        .iter()
        .filter(|point| point.verdict == Verdict::Fits && point.card == 0)
        .collect();
    let is_flat = 1 < fits.len() && fits.iter().all(|point| point.peaks == fits[0].peaks);
    if is_flat {
        let names: Vec<&str> = answer.knobs.iter().map(|knob| knob.name.as_str()).collect();
        notes.push(format!(
            "the peak is the same for all values of {}: is that how the script is told?",
            names.join(", ")
        ));
    }
    if let Some(Verdict::Failed(why)) = answer
        .points
        .iter()
        .map(|point| &point.verdict)
        .find(|verdict| matches!(verdict, Verdict::Failed(_)))
    {
        notes.push(format!("a trial failed by itself: {}", why.replace('\n', "\n         ")));
    }
    if runner.is_in_world() || answer.knobs.iter().any(|knob| knob.name == WORLD_SIZE) {
        notes.push(
            "rank 0 of each world was run, NCCL's memory (modelled) included; `fathom run --ranks` compares ranks"
                .to_owned(),
        );
    }
    if !runner.is_warm() {
        notes.push("each trial starts Python anew: only `python script.py` and `python -m` can be kept warm".to_owned());
    }
    notes
}

fn show(answer: &Sweep, json: Option<&Path>) -> Result<()> {
    if json == Some(Path::new("-")) {
        anstream::print!("{}", report::sweep::json(answer));
        return Ok(());
    }
    if let Some(path) = json {
        std::fs::write(path, report::sweep::json(answer))
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    anstream::print!("{}", report::sweep::terminal(answer, Palette::coloured()));
    Ok(())
}
