//! `fathom check`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use report::check::{self, Check};
use report::{Palette, Verdict};

use crate::cli::CheckArguments;
use crate::error::Hinted;
use crate::gate::Gate;
use crate::launch::Launch;
use crate::settings::{Settings, find_file, read_file};
use crate::{ci, outcome};

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

/// Runs the scripts of `fathom.toml`, one after another; 0 if all pass.
pub(crate) fn check(arguments: &CheckArguments) -> Result<u8> {
    let outlets = arguments.outlets.absolute();
    let json = arguments.json.as_ref().map(|path| match path.as_os_str() == "-" {
        true => path.clone(),
        false => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
    });
    let is_text = json.as_deref() != Some(Path::new("-"));
    let file = find_file(&std::env::current_dir().unwrap_or_default())
        .ok_or_else(|| Hinted::error("there is no `fathom.toml` here or above", EXAMPLE))?;
    // Commands and files of the settings are meant from where they are written.
    if let Some(folder) = file.parent() {
        std::env::set_current_dir(folder)
            .with_context(|| format!("cannot go to `{}`", folder.display()))?;
    }
    let entries = entries(&file, arguments)?;
    let mut checks = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        eprintln!("fathom: {} ({} of {})", entry.name, index + 1, entries.len());
        let check = run(entry, arguments.verbose)?;
        if is_text {
            anstream::print!("{}", check::row(&check, Palette::coloured()));
        }
        let is_interrupted = check.run.failure.as_deref() == Some("interrupted");
        checks.push(check);
        if is_interrupted {
            break;
        }
    }
    ci::publish(&checks, &outlets)?;
    match json {
        Some(path) if is_text => fs::write(&path, check::json(&checks))
            .with_context(|| format!("cannot write `{}`", path.display()))?,
        Some(_) => anstream::print!("{}", check::json(&checks)),
        None => {}
    }
    if is_text {
        anstream::print!("{}", check::summary(&checks));
        ci::annotations(&checks).iter().for_each(|line| println!("{line}"));
    }
    Ok(check::exit_code(&checks) as u8)
}

/// The scripts that were asked for, with all that can be wrong about them found before the first runs.
fn entries(file: &Path, arguments: &CheckArguments) -> Result<Vec<Entry>> {
    let scripts = read_file(file)?.script;
    let mut entries: Vec<Entry> = Vec::new();
    let mut names = Vec::new();
    for script in &scripts {
        let (name, typed) = script.typed()?;
        if names.contains(&name) {
            return Err(Hinted::error(
                format!("`{}` has two scripts with the name `{name}`", file.display()),
                "give each its own `name`",
            ));
        }
        names.push(name.clone());
        if !arguments.names.is_empty() && !arguments.names.contains(&name) {
            continue;
        }
        let in_script = || format!("in the script `{name}`");
        let settings = Settings::resolve(&typed).with_context(in_script)?;
        let save = settings.baseline.clone().filter(|_| arguments.update_baselines);
        let gate = Gate::open(&settings, save.as_deref()).with_context(in_script)?;
        let launch = Launch::prepare(&typed.command).with_context(in_script)?;
        entries.push(Entry { name, command: typed.command, settings, gate, launch });
    }
    if scripts.is_empty() {
        return Err(Hinted::error(format!("`{}` has no scripts", file.display()), EXAMPLE));
    }
    if let Some(unknown) = arguments.names.iter().find(|name| !names.contains(name)) {
        return Err(Hinted::error(
            format!("`{}` has no script `{unknown}`", file.display()),
            format!("it has: {}", names.join(", ")),
        ));
    }
    Ok(entries)
}

fn run(entry: &Entry, is_verbose: bool) -> Result<Check> {
    let Entry { name, command, settings, gate, launch } = entry;
    let folder = tempfile::Builder::new().prefix("fathom-check-").tempdir()?;
    let log = folder.path().join("output");
    let ended = match is_verbose {
        true => launch.run(command, settings, folder.path())?,
        false => launch.run_quietly(command, settings, folder.path(), &log)?,
    };
    let mut run = outcome::read(folder.path(), &ended, settings);
    gate.judge(&mut run);
    if run.verdict == Verdict::ScriptFailed {
        let text = fs::read(&log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..]
            .iter()
            .for_each(|line| eprintln!("{line}"));
    }
    if let Some(path) = gate.save(&run)? {
        eprintln!("fathom: wrote {}", path.display());
    }
    Ok(Check { name: name.clone(), command: command.join(" "), run })
}
