//! Texts about memory: messages, tables, figures that do not agree.

// What is read here may come from anyone.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

mod arguments;
mod config;
mod seek;

use std::fs;
use std::path::Path;

use anyhow::Result;
use oom::{Amount, Dim, Reconciling, Shape, Solution};
use report::oom::Texts;

pub(crate) use self::arguments::TextArguments;
use crate::card::{find_card, size};
use crate::error::Hinted;
use crate::outputs::Outputs;
use crate::screen;

/// Explains texts, each with the name of its file.
pub(crate) fn explain(
    texts: &[(String, String)],
    arguments: &TextArguments,
    json: Option<&Path>,
    outputs: &mut Outputs,
) -> Result<()> {
    let mut answer = Texts { entries: answer::entries(texts), ..Texts::default() };
    let reconciling = reconciling(arguments)?;
    if answer.entries.is_empty() && reconciling.is_empty() {
        return Err(answer::nothing(texts));
    }
    let tried = answer.main().and_then(|entry| Some((entry.account.tried()?, entry.account.kind)));
    let dims = dims(arguments)?;
    let claims = claims(arguments)?;
    match tried {
        Some((tried, kind)) => {
            let asked = oom::requests(tried, kind);
            let named = answer.main().is_some_and(|entry| entry.account.tensor.is_some());
            let wants = !dims.is_empty() || arguments.guess;
            answer.solution = (wants && !named).then(|| shapes(&asked, &dims, arguments.guess));
            answer.claims = claims.iter().map(|claim| oom::refute(claim, &asked)).collect();
            if !arguments.command.is_empty() {
                let capacity = answer.main().and_then(|entry| entry.account.figures.capacity);
                let sought = seek::seek(&asked, capacity, &arguments.command)?;
                // Who knows needs no guesses.
                let is_known = sought.is_found();
                answer.solution =
                    answer.solution.filter(|solution| !(is_known && solution.guessed));
                answer.sought = Some(sought);
            }
        }
        None => refuse_without_size(arguments)?,
    }
    if !reconciling.is_empty() {
        answer.card = reconciling.card.as_ref().map(|card| card.name.to_owned());
        answer.reconciliation = Some(oom::reconcile(&reconciling));
    }
    answer.next = answer::next(&answer, texts, &arguments.said());
    show(&answer, json, outputs);
    Ok(())
}

/// Of the dimensions that were given; guesses only for who asks for them.
fn shapes(asked: &[Amount], dims: &[Dim], guess: bool) -> Solution {
    let solution = oom::solve(asked, dims);
    match guess && solution.candidates.is_empty() {
        true => Solution { candidates: oom::guess(asked), guessed: true, ..solution },
        false => solution,
    }
}

/// What needs the size that was tried cannot be answered without it.
fn refuse_without_size(arguments: &TextArguments) -> Result<()> {
    let flag = match () {
        () if !arguments.shape.is_empty() => "--shape",
        () if !arguments.dims.is_empty() => "--dims",
        () if arguments.guess => "--guess",
        () if !arguments.command.is_empty() => "-- COMMAND",
        () => return Ok(()),
    };
    Err(Hinted::error(
        format!("`{flag}` needs a message that says how much was tried"),
        "give the whole text of the error: it contains `Tried to allocate`",
    ))
}

fn dims(arguments: &TextArguments) -> Result<Vec<Dim>> {
    let mut dims = Vec::new();
    for text in
        arguments.dims.iter().flat_map(|list| list.split(',')).filter(|text| !text.is_empty())
    {
        let dim = Dim::parse(text).ok_or_else(|| {
            Hinted::error(
                format!("`--dims`: `{text}` is not a dimension"),
                "write names and whole numbers: `--dims batch=4,channels=256,kernel=7`, and `side=?` for one that is not known",
            )
        })?;
        dims.push(dim);
    }
    if let Some(path) = &arguments.config {
        let text = fs::read_to_string(path).map_err(|error| {
            Hinted::error(format!("cannot read `{}`: {error}", path.display()), "name a YAML file")
        })?;
        dims.extend(config::dims(&text));
    }
    Ok(dims)
}

fn claims(arguments: &TextArguments) -> Result<Vec<Shape>> {
    let claim = |text: &String| {
        Shape::parse(text).ok_or_else(|| {
            let hint = "write its sizes: `--shape 4x256x49x256x256`";
            Hinted::error(format!("`--shape`: `{text}` is not a shape"), hint)
        })
    };
    arguments.shape.iter().map(claim).collect()
}

fn reconciling(arguments: &TextArguments) -> Result<Reconciling> {
    let amount = |flag: &str, text: &Option<String>| -> Result<Option<Amount>> {
        let Some(text) = text else { return Ok(None) };
        // The strict reader first: of `24GB` it knows what is meant, and says what is ambiguous.
        let bytes = size(flag, text)?;
        // Digits that were left out are open; nobody who types `8GiB` left any out.
        let is_rounded = text.contains('.') || text.to_ascii_lowercase().ends_with("mib");
        let rounded = Amount::parse(text).filter(|amount| is_rounded && amount.contains(bytes));
        Ok(Some(rounded.unwrap_or(Amount::exactly(bytes))))
    };
    let card = arguments.gpu.as_deref().map(find_card).transpose()?.cloned();
    let parameters = arguments.parameters.as_deref().map(|text| {
        count(text).ok_or_else(|| {
            let hint = "write a number: `--parameters 76464439`, `--parameters 7B`";
            Hinted::error(format!("`--parameters`: `{text}` is not a count"), hint)
        })
    });
    Ok(Reconciling {
        smi: amount("--smi", &arguments.smi)?,
        reserved: amount("--reserved", &arguments.reserved)?,
        allocated: amount("--allocated", &arguments.allocated)?,
        parameters: parameters.transpose()?,
        card,
    })
}

/// `76464439`, `7e9`, `1.5B`
fn count(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase().replace(['_', ','], "");
    let units = [("k", 1e3), ("m", 1e6), ("b", 1e9), ("t", 1e12)];
    let unit = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (number, unit) = unit.unwrap_or((&text, 1.0));
    let count = number.parse::<f64>().ok()? * unit;
    (1.0..1e15).contains(&count).then_some(count.round() as u64)
}

fn show(answer: &Texts, json: Option<&Path>, outputs: &mut Outputs) {
    if outputs.json(json, || report::oom::json(answer)) {
        outputs.print(&report::oom::terminal(answer, screen::reader()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_people_write_them() {
        assert_eq!(count("76_464_439"), Some(76_464_439));
        assert_eq!((count("7e9"), count("1.5B")), (Some(7_000_000_000), Some(1_500_000_000)));
        for text in ["", "B", "many", "-1", "0", "nan", "inf", "1e300"] {
            assert_eq!(count(text), None, "{text}");
        }
    }
}
