//! `fathom check`.

mod checks;

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result};
use report::check::{self, Check};

use self::checks::Checks;
use crate::cli::CheckArguments;
use crate::error::Hinted;
use crate::gate::Gate;
use crate::jobs::{Jobs, Started};
use crate::launch::Launch;
use crate::outputs::Outputs;
use crate::scripts::Script;
use crate::session::{Folder, Streams};
use crate::settings::{Settings, Typed, find_file, read_file};
use crate::{ci, outcome, screen};

/// What a script printed is shown to this length if it failed.
const SHOWN_LINES: usize = 20;

const EXAMPLE: &str = "write `fathom.toml` with, for each script, `[[script]]`, `command = \"python train.py\"` and \
                       e.g. `gpu = \"rtx3090\"`, `budget = \"16GiB\"`";

/// A script, ready to be run.
struct Entry {
    name: String,
    command: Vec<String>,
    settings: Settings,
    gate: Gate,
    launch: Launch,
}

/// Runs the scripts of `fathom.toml` and shows them in their order; 0 if all pass.
pub(crate) fn check(arguments: &CheckArguments) -> Result<u8> {
    let outlets = arguments.outlets.absolute();
    let json = arguments.json.as_ref().map(|path| match path.as_os_str() == "-" {
        true => path.clone(),
        false => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
    });
    let is_text = !screen::is_stdout(json.as_deref());
    let asked = [("--json", json.as_deref())].into_iter().chain(outlets.asked());
    let mut outputs = Outputs::check(&asked.collect::<Vec<_>>())?;
    let file = find_file(&std::env::current_dir().unwrap_or_default())
        .ok_or_else(|| Hinted::error("there is no `fathom.toml` here or above", EXAMPLE))?;
    // Commands and files of the settings are meant from where they are written.
    if let Some(folder) = file.parent() {
        std::env::set_current_dir(folder)
            .with_context(|| format!("cannot go to `{}`", folder.display()))?;
    }
    let entries = entries(&file, arguments)?;
    let typed = Typed { jobs: arguments.jobs.clone(), ..Typed::default() };
    let asked = Settings::resolve(&typed)?.jobs;
    // On a terminal they take turns.
    let mut jobs = Jobs::new(if arguments.verbose { Some(NonZeroUsize::MIN) } else { asked });
    let mut checks = Checks::new(&entries, is_text, &mut outputs);
    checks.announce();
    jobs.run(&mut checks, |index, is| run(&entries[*index], arguments.verbose, is))?;
    let checks = checks.finish();
    ci::publish(&checks, &outlets, &mut outputs);
    if outputs.json(json.as_deref(), || check::json(&checks)) {
        outputs.print(&check::summary(&checks));
        outputs.print(&ci::annotations(&checks));
    }
    Ok(outputs.finish(check::exit_code(&checks) as u8))
}

/// The scripts that were asked for, with all that can be wrong about them found before the first runs.
fn entries(file: &Path, arguments: &CheckArguments) -> Result<Vec<Entry>> {
    let scripts = read_file(file)?.script;
    let scripts: Vec<(String, Vec<String>, Typed)> =
        scripts.iter().map(Script::typed).collect::<Result<_>>()?;
    let shown = file.display();
    if scripts.is_empty() {
        return Err(Hinted::error(format!("`{shown}` has no scripts"), EXAMPLE));
    }
    let names: Vec<&String> = scripts.iter().map(|(name, ..)| name).collect();
    let twice = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name));
    if let Some((_, name)) = twice {
        let message = format!("`{shown}` has two scripts with the name `{name}`");
        return Err(Hinted::error(message, "give each its own `name`"));
    }
    if let Some(unknown) = arguments.names.iter().find(|name| !names.contains(name)) {
        let all: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        let message = format!("`{shown}` has no script `{unknown}`");
        return Err(Hinted::error(message, format!("it has: {}", all.join(", "))));
    }
    let is_wanted = |name: &String| arguments.names.is_empty() || arguments.names.contains(name);
    let wanted = scripts.iter().filter(|(name, ..)| is_wanted(name));
    wanted
        .map(|(name, command, typed)| {
            entry(name, command, typed, arguments.update_baselines)
                .with_context(|| format!("in the script `{name}`"))
        })
        .collect()
}

fn entry(name: &str, command: &[String], typed: &Typed, update_baseline: bool) -> Result<Entry> {
    let settings = Settings::resolve(typed)?;
    let save = settings.baseline.as_deref().filter(|_| update_baseline);
    let gate = Gate::open(&settings, save)?;
    let launch = Launch::prepare(command)?;
    Ok(Entry { name: name.to_owned(), command: command.to_vec(), settings, gate, launch })
}

/// Runs a script: what came of it, and the last lines that it printed.
fn run(entry: &Entry, is_verbose: bool, is: &Started) -> Result<(Check, String)> {
    let Entry { name, command, settings, gate, launch } = entry;
    let folder = Folder::new("check")?;
    let log = folder.path().join("output");
    let streams = match is_verbose {
        true => Streams::default(),
        false => Streams::to_file(&log)?,
    };
    let ended = launch.run_with(command, settings, folder.path(), streams, is)?;
    let mut run = outcome::read(folder.path(), &ended, settings);
    gate.judge(&mut run);
    let text = fs::read(&log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    Ok((Check { name: name.clone(), command: command.join(" "), run }, last))
}
