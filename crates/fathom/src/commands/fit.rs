//! `fathom fit`.

use std::time::Instant;

use anyhow::Result;
use fit::Knob;
use fit::lever::{self, AMP_BF16, AMP_FP16};
use fit::plan::{Speeds, Wish, search};
use report::fit::Fit;

use super::sweep::questions;
use crate::applied;
use crate::card::headroom;
use crate::cli::FitArguments;
use crate::error::Hinted;
use crate::fitting::Fitting;
use crate::outputs::Outputs;
use crate::page;
use crate::progress::Progress;
use crate::runner::{OnPhantom, hinted};
use crate::screen;
use crate::settings::Settings;
use crate::vary::{Vary, read_vary, templates};

/// Of a card's memory: what a plan leaves free, unless something else is asked for.
const HEADROOM: f64 = 0.03;

/// Cards from this compute capability on have bfloat16.
const BFLOAT16: (u32, u32) = (8, 0);

/// Finds what to change so that the command fits the card.
pub(crate) fn fit(arguments: &FitArguments) -> Result<u8> {
    let began = Instant::now();
    let trial = &arguments.trial;
    let page = arguments.page.as_deref();
    let mut outputs = Outputs::check(&[("--json", trial.json.as_deref()), ("--page", page)])?;
    let settings = Settings::resolve(&arguments.into())?;
    let mut notes = settings.notes.clone();
    let card = settings
        .card
        .clone()
        .ok_or_else(|| Hinted::error("no card is named", "`--gpu rtx3090`, or `--memory 16GiB`"))?;
    let only = wanted(&arguments.levers)?;
    let knobs = knobs(arguments)?;
    let values: Vec<(String, Vec<String>)> =
        knobs.iter().map(|(knob, values)| (knob.name.clone(), values.clone())).collect();
    let knobs: Vec<Knob> = knobs.into_iter().map(|(knob, _)| knob).collect();
    let progress = Progress::new(trial.quiet);
    let runner = OnPhantom::new(
        &trial.command,
        Vec::new(),
        vec![card.clone()],
        settings.for_trials(),
        !trial.fresh,
        progress,
    )?
    .in_world(trial.world_size);
    let mut bench = Fitting::new(runner, knobs.clone(), card.clone());
    let wish = Wish {
        card: questions(std::slice::from_ref(&card)).swap_remove(0),
        speeds: Speeds { flops: card.flops(), bandwidth: card.bandwidth() },
        only,
        allow_training: arguments.allow.iter().any(|word| word == "training"),
        knobs: values.clone(),
        headroom: match &arguments.headroom {
            Some(text) => headroom(text, &card)?,
            None => usual_headroom(&card),
        },
        precision: precision(&card),
    };
    let answer = search(&mut bench, &wish)?;
    let is_whole = bench.runner.unfinished(began).is_none();
    let is_open =
        answer.chosen.is_none() && answer.proposed.is_none() && !answer.as_it_is.fits() && is_whole;
    if !wish.allow_training && is_open && answer.baseline.outcome.fits() {
        notes.push("levers that change the training were not tried: `--allow training`".to_owned());
    }
    notes.extend(bench.runner.counts.notes());
    let done = match arguments.write {
        true => Some(applied::apply(&answer)?),
        false => None,
    };
    notes.extend(done.as_ref().map(applied::Applied::note));
    let fit = Fit {
        card: card.shown_title().to_owned(),
        memory_bytes: card.memory_bytes,
        used_bytes: card.used_bytes,
        context_bytes: card.context_bytes,
        answer,
        knobs: written(&knobs, &values),
        trials: bench.runner.trials(began, notes),
    };
    drop(bench);
    if let Some(path) = page {
        outputs.file(path, page::of_trials(&report::fit::json(&fit)));
    }
    if outputs.json(trial.json.as_deref(), || report::fit::json(&fit)) {
        outputs.print(&report::fit::terminal(&fit, screen::reader()));
    }
    let failed = done.is_some_and(|done| !done.is_done());
    Ok(outputs.finish(fit.exit_code().max(u8::from(failed))))
}

/// What a plan leaves free of a card if nothing is asked for.
pub(super) fn usual_headroom(card: &gpus::Card) -> u64 {
    (card.memory_bytes as f64 * HEADROOM) as u64
}

/// The lever of lower precision for a card.
pub(super) fn precision(card: &gpus::Card) -> &'static str {
    if BFLOAT16 <= card.compute_capability { AMP_BF16 } else { AMP_FP16 }
}

/// Every value of every knob, as the user would write it.
fn written(knobs: &[Knob], values: &[(String, Vec<String>)]) -> Vec<(String, String, String)> {
    let of = |knob: &Knob| {
        let row = values.iter().find(|row| row.0 == knob.name);
        let shown = |value: &String| (knob.name.clone(), value.clone(), knob.shown(value));
        row.into_iter().flat_map(|row| &row.1).map(shown).collect::<Vec<_>>()
    };
    knobs.iter().flat_map(of).collect()
}

/// `--try`, checked.
fn wanted(names: &[String]) -> Result<Vec<String>> {
    let known: Vec<&str> = lever::all().map(|row| row.id).collect();
    for name in names {
        if !known.contains(&name.as_str()) {
            let list = known.join(", ");
            return Err(Hinted::error(
                format!("there is no lever `{name}`"),
                format!("levers are {list}"),
            ));
        }
    }
    Ok(names.to_vec())
}

/// Knobs and the values to try, in the order given.
fn knobs(arguments: &FitArguments) -> Result<Vec<(Knob, Vec<String>)>> {
    let trial = &arguments.trial;
    let templates = templates(trial)?;
    let mut knobs = Vec::new();
    for text in &arguments.vary {
        let (name, vary) = read_vary(text)?;
        let Vary::Values(values) = vary else {
            return Err(Hinted::error(
                format!("`--vary {text}` is a range"),
                "for `fit` name the values to try, the mildest first: `--vary batch=16,8,4`",
            ));
        };
        let template = templates.iter().find(|row| row.0 == name).map(|row| row.1.as_str());
        let knob = Knob::new(&name, template, &trial.command).map_err(hinted)?;
        knobs.push((knob, values));
    }
    for (name, template) in &templates {
        if knobs.iter().any(|(knob, _)| knob.name == *name) {
            continue;
        }
        let knob = Knob::new(name, Some(template), &trial.command).map_err(hinted)?;
        let values =
            knob.current(&trial.command).and_then(|now| halves(&now)).ok_or_else(|| {
                Hinted::error(
                    format!("`--set {name}=…` has no values"),
                    format!("add the values to try: `--vary {name}=16,8,4`"),
                )
            })?;
        knobs.push((knob, values));
    }
    Ok(knobs)
}

/// Half of a number, a quarter and so on, as far as they are whole.
fn halves(now: &str) -> Option<Vec<String>> {
    let mut number: u64 = now.parse().ok()?;
    let mut values = Vec::new();
    while 0 < number && number.is_multiple_of(2) {
        number /= 2;
        values.push(number.to_string());
    }
    (!values.is_empty()).then_some(values)
}
