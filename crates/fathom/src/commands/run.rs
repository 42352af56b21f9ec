//! `fathom run`.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::Result;
use report::Palette;
use report::check::Check;
use study::Run;

use crate::bound;
use crate::ci;
use crate::cli::RunArguments;
use crate::gate::Gate;
use crate::launch::Launch;
use crate::outcome;
use crate::outputs::{Asked, Outputs};
use crate::page;
use crate::ranks::RankRunner;
use crate::screen;
use crate::session::{Folder, Kept};
use crate::settings::Settings;
use crate::world::World;

/// Runs the command on the phantom and reports; the exit code says whether it fits.
pub(crate) fn run(arguments: &RunArguments) -> Result<u8> {
    let settings = Settings::resolve(arguments)?;
    let mut outputs = Outputs::check(&asked(arguments))?;
    let gate = Gate::open(&settings, arguments.save_baseline.as_deref())?;
    let world = World::resolve(&arguments.world)?;
    let launch = Launch::prepare(&arguments.command)?;
    if arguments.verbose {
        for (key, value, origin) in &settings.origins {
            screen::say(&format!("fathom: {key} = {value} ({origin})"));
        }
    }
    let folder = Place::make(arguments.out.as_deref())?;
    let (mut run, files) = match &world {
        Some(world) => {
            RankRunner::new(&launch, &arguments.command, &settings, world, folder.path())?.run()?
        }
        None => {
            let ended = launch.run(&arguments.command, &settings, folder.path())?;
            (outcome::read(folder.path(), &ended, &settings), folder.path().to_owned())
        }
    };
    if bound::is_open(&run, &settings) {
        let (words, first) = (&arguments.command, (&run, folder.path()));
        run.most = match &world {
            Some(world) => bound::most_of_ranks(&launch, words, &settings, world, first)?,
            None => bound::most(&launch, words, &settings, first)?,
        };
        if run.most.as_ref().is_some_and(|most| most.is_same) {
            outcome::settle(&mut run);
        }
    }
    run.keep_cards_that_are_certain();
    if let Some(anatomy) = run.anatomy() {
        let asked = arguments.ask.iter();
        run.answers = asked.map(|ask| diagnose::ask(anatomy, run.findings(), ask)).collect();
    }
    gate.judge(&mut run);
    if let Place::Kept(kept) = &folder {
        outputs.file(&kept.path().join(page::REPORT), report::json(&run));
    }
    if let Some(path) = &arguments.page {
        let items = page::of_run(&run, &files, &arguments.command.join(" "));
        outputs.file(path, page::render(items, Vec::new()));
    }
    show(&run, arguments, &mut outputs);
    let exit_code = run.exit_code as u8;
    publish(run, arguments, &gate, &mut outputs);
    Ok(outputs.finish(exit_code))
}

/// Files that the flags ask for, besides a baseline.
fn asked(arguments: &RunArguments) -> Vec<Asked<'_>> {
    let own = [("--json", arguments.json.as_deref()), ("--page", arguments.page.as_deref())];
    own.into_iter().chain(arguments.outlets.asked()).collect()
}

/// What a gate writes besides the report.
fn publish(run: Run, arguments: &RunArguments, gate: &Gate, outputs: &mut Outputs) {
    if let Some(path) = outputs.note(gate.save(&run)).flatten() {
        screen::say(&format!("fathom: wrote {}", path.display()));
    }
    let program = Path::new(&arguments.command[0]).file_name().unwrap_or_default();
    let words = [&[program.to_string_lossy().into_owned()], &arguments.command[1..]].concat();
    let checks = [Check { name: words.join(" "), command: arguments.command.join(" "), run }];
    ci::publish(&checks, &arguments.outlets, outputs);
    if !screen::is_stdout(arguments.json.as_deref()) {
        outputs.print(&ci::annotations(&checks));
    }
}

fn show(run: &Run, arguments: &RunArguments, outputs: &mut Outputs) {
    if !outputs.json(arguments.json.as_deref(), || report::json(run)) {
        return;
    }
    let text = report::terminal(run, Palette::coloured(), &arguments.unfold.into());
    let text = match arguments.quiet {
        true => text.lines().next().map(|line| format!("{line}\n")).unwrap_or_default(),
        false if std::io::stdout().is_terminal() => format!("\n{text}"),
        false => text,
    };
    outputs.print(&text);
}

/// Where the processes of a run leave their files: kept on request, else gone with the run.
enum Place {
    Kept(Kept),
    Temporary(Folder),
}

impl Place {
    fn make(out: Option<&Path>) -> Result<Place> {
        Ok(match out {
            Some(out) => Place::Kept(Kept::open(out)?),
            None => Place::Temporary(Folder::new("run")?),
        })
    }

    fn path(&self) -> &Path {
        match self {
            Place::Kept(kept) => kept.path(),
            Place::Temporary(folder) => folder.path(),
        }
    }
}
