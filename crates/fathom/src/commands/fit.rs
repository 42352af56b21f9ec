//! `fathom fit`.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use fit::Knob;
use fit::lever::PLAIN;
use fit::plan::{Speeds, Wish, search};
use report::Palette;
use report::fit::Fit;

use super::sweep::{cache, questions, settings};
use crate::cli::{FitArguments, RunArguments};
use crate::error::Hinted;
use crate::fitting::Fitting;
use crate::progress::Progress;
use crate::runner::OnPhantom;
use crate::settings::Settings;
use crate::vary::{Vary, read_vary, templates};

/// Levers with options, beside those of the table.
const WITH_OPTIONS: [&str; 4] = ["checkpoint", "accumulate", "allocator", "freeze"];

/// Cards from this compute capability on have bfloat16.
const BFLOAT16: (u32, u32) = (8, 0);

/// Finds what to change so that the command fits the card.
pub(crate) fn fit(arguments: &FitArguments) -> Result<u8> {
    let began = Instant::now();
    let trial = &arguments.trial;
    let flags = RunArguments {
        gpu: arguments.gpu.clone(),
        memory: arguments.memory.clone(),
        ..RunArguments::default()
    };
    let card = Settings::resolve(&flags)?
        .card
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
        settings(trial)?,
        cache(trial),
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
        precision: if BFLOAT16 <= card.compute_capability { "amp-bf16" } else { "amp-fp16" },
    };
    let answer = search(&mut bench, &wish)?;
    let written = |knob: &Knob| {
        let of = values
            .iter()
            .find(|row| row.0 == knob.name)
            .map(|row| row.1.clone())
            .unwrap_or_default();
        of.into_iter()
            .map(|value| (knob.name.clone(), value.clone(), knob.shown(&value)))
            .collect::<Vec<_>>()
    };
    let mut notes = Vec::new();
    if !wish.allow_training && answer.chosen.is_none() && !answer.fits {
        notes.push("levers that change the training were not tried: `--allow training`".to_owned());
    }
    let fit = Fit {
        card: match card.memory_known {
            gpus::Known::Given => "a card".to_owned(),
            _ => card.title.to_owned(),
        },
        memory_bytes: card.memory_bytes,
        context_bytes: card.context_bytes,
        answer,
        knobs: knobs.iter().flat_map(written).collect(),
        run: bench.runner.counts.0,
        wall_seconds: began.elapsed().as_secs_f64(),
        notes,
    };
    drop(bench);
    show(&fit, trial.json.as_deref())?;
    Ok(fit.exit_code())
}

/// `--try`, checked.
fn wanted(names: &[String]) -> Result<Vec<String>> {
    let known: Vec<&str> = PLAIN.iter().map(|row| row.0).chain(WITH_OPTIONS).collect();
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
        let knob = Knob::new(&name, template, &trial.command)
            .map_err(|error| Hinted::error(error.to_string(), error.hint()))?;
        knobs.push((knob, values));
    }
    for (name, template) in &templates {
        if knobs.iter().any(|(knob, _)| knob.name == *name) {
            continue;
        }
        let knob = Knob::new(name, Some(template), &trial.command)
            .map_err(|error| Hinted::error(error.to_string(), error.hint()))?;
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

fn show(fit: &Fit, json: Option<&Path>) -> Result<()> {
    if json == Some(Path::new("-")) {
        anstream::print!("{}", report::fit::json(fit));
        return Ok(());
    }
    if let Some(path) = json {
        std::fs::write(path, report::fit::json(fit))
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    anstream::print!("{}", report::fit::terminal(fit, Palette::coloured()));
    Ok(())
}
