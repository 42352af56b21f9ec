//! `fathom sweep`.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use cuda_abi::environment as name;
use fit::largest::{Range, Search};
use fit::{Card, Knob, Verdict, grid, law};
use report::Palette;
use report::sweep::{Fewest, Row, Scaling, Sweep};

use crate::cache::Cache;
use crate::cli::{RunArguments, SweepArguments, TrialArguments};
use crate::error::Hinted;
use crate::growth;
use crate::launch::cache_folder;
use crate::progress::Progress;
use crate::runner::OnPhantom;
use crate::settings::{Settings, find_card, size};

/// Memories that are tried when no card is named, in GiB.
const MEMORIES: [u64; 7] = [8, 12, 16, 24, 32, 48, 80];

/// The knob that is a world's size.
const WORLD_SIZE: &str = "world-size";

/// What a knob is varied over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Vary {
    Values(Vec<String>),
    Range(Range),
}

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
    )?;
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

/// `batch=1,2,4` or `batch=1..512`.
pub(crate) fn read_vary(text: &str) -> Result<(String, Vary)> {
    let wrong = |why: &str| {
        Hinted::error(
            format!("`--vary {text}`: {why}"),
            "for example `--vary batch=8,16,32` or `--vary batch=1..512`",
        )
    };
    let (name, values) = text.split_once('=').ok_or_else(|| wrong("there is no `=`"))?;
    if name.is_empty() || values.is_empty() {
        return Err(wrong("a name and values are needed"));
    }
    if let Some((low, high)) = values.split_once("..") {
        let ends = (low.parse::<i64>(), high.trim_start_matches('=').parse::<i64>());
        let (Ok(low), Ok(high)) = ends else {
            return Err(wrong("the ends of a range are whole numbers"));
        };
        if high < low {
            return Err(wrong("the range is empty"));
        }
        return Ok((name.to_owned(), Vary::Range((low, high))));
    }
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if values.iter().any(String::is_empty) {
        return Err(wrong("a value is empty"));
    }
    Ok((name.to_owned(), Vary::Values(values)))
}

fn shown(vary: &Vary) -> Vec<String> {
    match vary {
        Vary::Values(values) => values.clone(),
        Vary::Range((low, high)) => vec![format!("{low}..{high}")],
    }
}

/// Knobs by name, with the templates that were given.
pub(crate) fn knobs(names: &[&str], trial: &TrialArguments) -> Result<Vec<Knob>> {
    let templates = templates(trial)?;
    if let Some((name, _)) = templates.iter().find(|(name, _)| !names.contains(&name.as_str())) {
        return Err(Hinted::error(
            format!("`--set {name}=…` is never varied"),
            format!("add `--vary {name}=…`, or leave it out"),
        ));
    }
    let knob = |called: &&str| {
        let template =
            templates.iter().find(|(of, _)| of == called).map(|(_, template)| template.as_str());
        // How many ranks there are is not the script's to say.
        let world = format!("{}={{}}", name::WORLD_SIZE);
        let template = template.or((*called == WORLD_SIZE).then_some(world.as_str()));
        Knob::new(called, template, &trial.command)
            .map_err(|error| Hinted::error(error.to_string(), error.hint()))
    };
    names.iter().map(knob).collect()
}

/// Name and template of each `--set`.
pub(crate) fn templates(trial: &TrialArguments) -> Result<Vec<(String, String)>> {
    let read = |text: &String| {
        let pair = text
            .split_once('=')
            .filter(|(name, template)| !name.is_empty() && !template.is_empty());
        let (name, template) = pair.ok_or_else(|| {
            Hinted::error(
                format!("`--set {text}` has no template"),
                "for example `--set batch='--batch-size {}'`",
            )
        })?;
        Ok((name.to_owned(), template.to_owned()))
    };
    trial.templates.iter().map(read).collect()
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

/// The smallest world that fits each card, for each combination of the other knobs.
fn fewest(answer: &Sweep) -> Vec<Fewest> {
    let Some(at) = answer.knobs.iter().position(|knob| knob.name == WORLD_SIZE) else {
        return Vec::new();
    };
    let others_of = |point: &grid::Point| {
        let named = answer.knobs.iter().map(|knob| knob.name.clone()).zip(point.values.clone());
        let others = named.enumerate().filter(|(index, _)| *index != at);
        others.map(|(_, pair)| pair).collect::<Vec<_>>()
    };
    let mut rows: Vec<Fewest> = Vec::new();
    for point in &answer.points {
        let others = others_of(point);
        let found = rows.iter().position(|row| row.card == point.card && row.others == others);
        let row = found.unwrap_or_else(|| {
            rows.push(Fewest { card: point.card, others, ranks: None });
            rows.len() - 1
        });
        let ranks = point.values[at].parse::<u64>().ok().filter(|_| point.verdict == Verdict::Fits);
        rows[row].ranks = rows[row].ranks.into_iter().chain(ranks).min();
    }
    rows.sort_by_key(|row| row.card);
    rows
}

/// Along each knob, the growth of the allocated peak in the runs that differ in this knob alone.
fn scaling(answer: &Sweep) -> Vec<Scaling> {
    let mut all = Vec::new();
    for (at, knob) in answer.knobs.iter().enumerate() {
        let ran = answer.points.iter().filter(|point| {
            point.card == 0 && point.how == grid::How::Run && point.verdict != Verdict::DoesNotFit
                || point.card == 0 && answer.cards[0].memory_bytes < point.peaks.allocated
        });
        let Some(first) = ran.clone().next() else { continue };
        let same = |point: &&grid::Point| {
            point
                .values
                .iter()
                .zip(&first.values)
                .enumerate()
                .all(|(index, (a, b))| index == at || a == b)
        };
        let mut line: Vec<(i64, u64)> = ran
            .filter(same)
            .filter_map(|point| Some((point.values[at].parse().ok()?, point.peaks.allocated)))
            .collect();
        line.sort_unstable();
        line.dedup_by_key(|point| point.0);
        let Some(exponent) = law::exponent(&line) else { continue };
        let exact = fit::Law::through(&line).is_some_and(|law| law.worst == 0.0);
        let (cause, share) = (None, 1.0);
        all.push(Scaling { knob: knob.name.clone(), cause, share, exponent, exact });
    }
    all
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
    if answer.knobs.iter().any(|knob| knob.name == WORLD_SIZE) {
        notes.push("rank 0 of each world was run; `fathom run --ranks` compares ranks".to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_ranges_are_read() {
        assert_eq!(read_vary("b=1..512").unwrap().1, Vary::Range((1, 512)));
        assert_eq!(read_vary("b=8, 16").unwrap().1, Vary::Values(vec!["8".into(), "16".into()]));
        for wrong in ["b", "=1", "b=", "b=1,,2", "b=9..3", "b=a..c"] {
            assert!(read_vary(wrong).is_err(), "{wrong}");
        }
    }
}
