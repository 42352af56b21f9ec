//! `fathom run`.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use report::check::Check;
use report::{Palette, Run};

use super::write;
use crate::ci;
use crate::cli::RunArguments;
use crate::gate::Gate;
use crate::launch::Launch;
use crate::outcome;
use crate::page;
use crate::ranks::{LETTERS, RankRunner};
use crate::settings::Settings;
use crate::world::World;

/// Runs the command on the phantom and reports; the exit code says whether it fits.
pub(crate) fn run(arguments: &RunArguments) -> Result<u8> {
    let settings = Settings::resolve(arguments)?;
    let gate = Gate::open(&settings, arguments.save_baseline.as_deref())?;
    let world = World::resolve(&arguments.world)?;
    let launch = Launch::prepare(&arguments.command)?;
    if arguments.verbose {
        for (key, value, origin) in &settings.origins {
            eprintln!("fathom: {key} = {value} ({origin})");
        }
    }
    let folder = Folder::make(arguments.out.as_deref())?;
    let (mut run, files) = match &world {
        Some(world) => {
            RankRunner::new(&launch, &arguments.command, &settings, world, folder.path()).run()?
        }
        None => {
            let ended = launch.run(&arguments.command, &settings, folder.path())?;
            (outcome::read(folder.path(), &ended, &settings), folder.path().to_owned())
        }
    };
    if let Some(anatomy) = &run.anatomy {
        let asked = arguments.ask.iter();
        run.answers = asked.map(|ask| diagnose::ask(anatomy, &run.findings, ask)).collect();
    }
    gate.judge(&mut run);
    if let Folder::Kept(folder) = &folder {
        write(&folder.join(page::REPORT), &report::json(&run))?;
    }
    if let Some(path) = &arguments.page {
        let items = page::of_run(&run, &files, &arguments.command.join(" "));
        write(path, &page::render(items, Vec::new()))?;
    }
    show(&run, arguments)?;
    let exit_code = run.exit_code as u8;
    publish(run, arguments, &gate)?;
    Ok(exit_code)
}

/// What a gate writes besides the report.
fn publish(run: Run, arguments: &RunArguments, gate: &Gate) -> Result<()> {
    if let Some(path) = gate.save(&run)? {
        eprintln!("fathom: wrote {}", path.display());
    }
    let program = Path::new(&arguments.command[0]).file_name().unwrap_or_default();
    let words = [&[program.to_string_lossy().into_owned()], &arguments.command[1..]].concat();
    let checks = [Check { name: words.join(" "), command: arguments.command.join(" "), run }];
    ci::publish(&checks, &arguments.outlets)?;
    let is_text = arguments.json.as_deref() != Some(Path::new("-"));
    ci::annotations(&checks).iter().filter(|_| is_text).for_each(|line| println!("{line}"));
    Ok(())
}

fn show(run: &Run, arguments: &RunArguments) -> Result<()> {
    let to_stdout = arguments.json.as_deref() == Some(Path::new("-"));
    if to_stdout {
        anstream::print!("{}", report::json(run));
        return Ok(());
    }
    if let Some(path) = &arguments.json {
        write(path, &report::json(run))?;
    }
    let text = report::terminal(run, Palette::coloured(), &arguments.unfold.into());
    let text = match arguments.quiet {
        true => text.lines().next().map(|line| format!("{line}\n")).unwrap_or_default(),
        false if std::io::stdout().is_terminal() => format!("\n{text}"),
        false => text,
    };
    anstream::print!("{text}");
    Ok(())
}

/// Where the processes of a run leave their files: kept on request, else gone with the run.
enum Folder {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Folder {
    fn make(out: Option<&Path>) -> Result<Folder> {
        let Some(out) = out else {
            return Ok(Folder::Temporary(
                tempfile::Builder::new().prefix("fathom-run-").tempdir()?,
            ));
        };
        fs::create_dir_all(out).with_context(|| format!("cannot make `{}`", out.display()))?;
        let out = out.canonicalize()?;
        for entry in fs::read_dir(&out)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if ["phantom.", "process.", "recording.", page::REPORT]
                .iter()
                .any(|kind| name.starts_with(kind))
            {
                fs::remove_file(entry.path())?;
            }
            if is_of_ranks(&name) && entry.path().is_dir() {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(Folder::Kept(out))
    }

    fn path(&self) -> &Path {
        match self {
            Folder::Kept(path) => path,
            Folder::Temporary(folder) => folder.path(),
        }
    }
}

/// Folders that the ranks of an earlier run left.
fn is_of_ranks(name: &str) -> bool {
    let number = name.strip_prefix("rank-").unwrap_or("x");
    name == LETTERS || number.bytes().all(|byte| byte.is_ascii_digit())
}
