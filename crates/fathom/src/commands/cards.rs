//! `fathom run --gpu A,B,…` and `--gpu all`: the same command on each card.

use anyhow::Result;
use gpus::Card;
use report::cards::{self, OnCard};

use crate::cli::{CardArguments, RunArguments};
use crate::error::Hinted;
use crate::outputs::Outputs;
use crate::progress::Progress;
use crate::runner::OnPhantom;
use crate::screen;
use crate::settings::{Settings, Typed};
use crate::whole;

/// The word for the whole catalogue.
const ALL: &str = "all";

/// The cards that are named, if they are several; a number after `--gpus` is how many one process sees.
pub(super) fn named(arguments: &RunArguments) -> Option<Vec<&str>> {
    let listed = arguments.world.gpus.as_deref().filter(|text| text.parse::<u32>().is_err());
    let text = listed.or(arguments.card.gpu.as_deref())?;
    let is_list = listed.is_some() || text == ALL || text.contains(',');
    is_list.then(|| text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect())
}

/// Runs the command on each of them and shows one table; 0 if it fits all that are named, or any of the catalogue.
pub(super) fn run(arguments: &RunArguments, names: &[&str]) -> Result<u8> {
    refuse(arguments)?;
    let mut outputs = Outputs::check(&[("--json", arguments.json.as_deref())])?;
    let cards = meant(arguments, names)?;
    let card = CardArguments::default();
    let settings = Settings::resolve(&Typed { card, cards: None, ..Typed::from(arguments) })?;
    let settings = Settings { card: None, ..settings };
    let progress = Progress::new(arguments.quiet);
    let command = &arguments.command;
    let mut runner =
        OnPhantom::new(command, Vec::new(), cards.clone(), settings.clone(), true, progress)?;
    let wanted = cards.iter().map(|card| runner.recorded(Some(card.clone()))).collect();
    runner.expect(cards.len());
    let mut runs = runner.run_each(wanted)?;
    whole::see_on_each(&mut runner, &settings, &mut runs)?;
    let rows: Vec<OnCard> = runs.into_iter().map(|(_, run)| OnCard { run }).collect();
    if outputs.json(arguments.json.as_deref(), || cards::json(&rows)) {
        outputs.print(&cards::terminal(&rows, screen::reader()));
    }
    let is_all = names == [ALL];
    let passes = match is_all {
        true => rows.iter().any(OnCard::fits),
        false => rows.iter().all(OnCard::fits),
    };
    let failed = rows.iter().all(|row| row.run.exit_code == 3);
    Ok(outputs.finish(if failed { 3 } else { u8::from(!passes) }))
}

/// Cards of the catalogue, one of each chip and memory, or those that are named.
fn meant(arguments: &RunArguments, names: &[&str]) -> Result<Vec<Card>> {
    let own = |name: &str| CardArguments {
        gpu: Some(name.to_owned()),
        memory: None,
        used: arguments.card.used.clone(),
    };
    if names != [ALL] {
        let each = names.iter().map(|name| own(name).meant());
        let each: Result<Vec<_>> = each.collect();
        return Ok(each?.into_iter().flatten().map(|meant| meant.card).collect());
    }
    let mut cards: Vec<Card> = gpus::cards().to_vec();
    cards.sort_by_key(|card| card.memory_bytes);
    Ok(cards)
}

/// What goes with one card alone.
fn refuse(arguments: &RunArguments) -> Result<()> {
    let given = [
        ("--memory", arguments.card.memory.is_some()),
        ("--page", arguments.page.is_some()),
        ("--out", arguments.out.is_some()),
        ("--baseline", arguments.baseline.is_some() || arguments.save_baseline.is_some()),
        ("--world-size", arguments.world.world_size.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(Hinted::error(
            format!("`{flag}` with several GPUs"),
            format!("name one GPU, or leave `{flag}` out"),
        )),
        None => Ok(()),
    }
}
