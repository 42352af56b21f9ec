//! The command that goes on from a run: filled in, so that it can be typed as it stands.

use std::path::Path;

use study::{Fit, FitsOn, Judgement, Run};

use crate::cli::{CardArguments, RunArguments, WorldArguments};
use crate::settings::MOST;
use crate::shell;

/// What a longer run gets, where time ran out.
const LONGER: u64 = 4;

/// The next command, if there is one that says more.
pub(super) fn next(arguments: &RunArguments, run: &Run) -> Option<String> {
    let command = &arguments.command;
    let words = match run.judgement() {
        Judgement::DoesNotFit | Judgement::Tight => of_fit(arguments, None),
        // A plan that fits with the most that unknown values can give fits in any case.
        Judgement::Depends => of_fit(arguments, Some(MOST)),
        Judgement::Needs => match smallest(run) {
            Some(gpu) => of_run(arguments, &[("--gpu", Some(gpu))]),
            None => of_page(arguments)?,
        },
        Judgement::Fits | Judgement::Grew => of_page(arguments)?,
        Judgement::TimedOut => {
            let longer = arguments.timeout.map(|seconds| seconds.saturating_mul(LONGER));
            of_run(arguments, &[("--timeout", longer.map(|seconds| seconds.to_string()))])
        }
        // A script that trained left the card alone by its own choice.
        Judgement::NotMeasured if 0 < run.steps => return None,
        Judgement::NotMeasured => return is_python(command).then(|| doctor(command)),
        Judgement::ScriptFailed | Judgement::Interrupted => return None,
    };
    let command = command.iter().map(String::as_str);
    let words = words.iter().map(String::as_str).chain(["--"]).chain(command);
    Some(shell::line(words))
}

/// What to change so that it fits.
fn of_fit(arguments: &RunArguments, assume: Option<&str>) -> Vec<String> {
    let mut words = vec!["fathom".to_owned(), "fit".to_owned()];
    // A card of the environment or of `fathom.toml` is that of the next command too.
    words.extend(flags(&card(&arguments.card)));
    // What the run assumed of everything makes room for the most; what is known of a line stays.
    let is_of_a_line = |value: &Option<String>| value.as_deref().is_some_and(|it| it.contains('='));
    let mut given = shared(arguments);
    given.retain(|(flag, value)| assume.is_none() || *flag != "--assume" || is_of_a_line(value));
    words.extend(flags(&given));
    let world = arguments.world.world_size.map(|size| size.to_string());
    words.extend(flags(&[("--world-size", world)]));
    let all = assume.map(str::to_owned);
    words.extend(flags(&[("--assume", all)]));
    words
}

/// The same run, with other flags in place of its own.
fn of_run(arguments: &RunArguments, others: &[(&'static str, Option<String>)]) -> Vec<String> {
    let WorldArguments { world_size, rank, ranks, gpus_per_node, gpus } = &arguments.world;
    let mut own = card(&arguments.card).to_vec();
    own.extend(shared(arguments));
    own.extend([
        ("--world-size", world_size.map(|size| size.to_string())),
        ("--rank", rank.map(|rank| rank.to_string())),
        ("--ranks", ranks.clone()),
        ("--gpus-per-node", gpus_per_node.map(|count| count.to_string())),
        ("--gpus", gpus.clone()),
    ]);
    own.retain(|(flag, _)| others.iter().all(|(other, _)| other != flag));
    let words = ["fathom".to_owned(), "run".to_owned()];
    words.into_iter().chain(flags(others)).chain(flags(&own)).collect()
}

/// The whole report as a page, unless that is there already.
fn of_page(arguments: &RunArguments) -> Option<Vec<String>> {
    let page = [("--page", Some("report.html".to_owned()))];
    arguments.page.is_none().then(|| of_run(arguments, &page))
}

fn card(card: &CardArguments) -> [(&'static str, Option<String>); 3] {
    let CardArguments { gpu, memory, used } = card;
    [("--gpu", gpu.clone()), ("--memory", memory.clone()), ("--used", used.clone())]
}

/// Flags that a run and a search for plans both have.
fn shared(arguments: &RunArguments) -> Vec<(&'static str, Option<String>)> {
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let assumed = arguments.assume.iter().map(|text| ("--assume", Some(text.clone())));
    [("--steps", number(arguments.steps)), ("--timeout", number(arguments.timeout))]
        .into_iter()
        .chain(assumed)
        .collect()
}

fn flags(flags: &[(&'static str, Option<String>)]) -> Vec<String> {
    let given = flags.iter().filter_map(|(flag, value)| Some((*flag, value.as_ref()?)));
    given.flat_map(|(flag, value)| [flag.to_owned(), value.clone()]).collect()
}

/// The smallest GPU of the catalogue that is sure to do.
fn smallest(run: &Run) -> Option<String> {
    let is_certain = |card: &&FitsOn| card.known != Fit::Likely;
    let certain = || run.fits_on.iter().filter(is_certain);
    certain()
        .find(|card| !card.is_tight)
        .or(certain().next())
        .or(run.fits_on.first())
        .map(|card| card.name.clone())
}

/// Whether the first word is a Python.
fn is_python(command: &[String]) -> bool {
    let name = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().starts_with("python")
}

fn doctor(command: &[String]) -> String {
    shell::line(["fathom", "doctor", "--", command.first().map_or("python", String::as_str)])
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn one_assumption_of_everything_is_enough() {
        let words = "fathom run --assume least --assume train.py:8=4 -- python train.py";
        let Command::Run(arguments) = Cli::parse_from(words.split(' ')).command else {
            panic!("it is a run");
        };
        let most = of_fit(&arguments, Some(MOST)).join(" ");
        assert_eq!(most, "fathom fit --assume train.py:8=4 --assume most");
        let as_it_was = of_fit(&arguments, None).join(" ");
        assert_eq!(as_it_was, "fathom fit --assume least --assume train.py:8=4");
    }
}
