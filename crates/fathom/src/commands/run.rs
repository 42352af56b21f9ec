//! `fathom run`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use report::check::Check;
use study::{Run, Verdict};

use super::cards;
use super::next::next;
use crate::asking;
use crate::bound;
use crate::ci;
use crate::cli::RunArguments;
use crate::confined::{By, Confined, Window};
use crate::gate::Gate;
use crate::launch::Launch;
use crate::need::Again;
use crate::outcome;
use crate::outputs::{Asked, Outputs};
use crate::page;
use crate::progress::Soon;
use crate::ranks;
use crate::screen;
use crate::session::{self, Folder, Kept};
use crate::settings::{Settings, Verify};
use crate::whole;
use crate::world::World;

/// File systems note times a little late.
const LATE: Duration = Duration::from_secs(1);

/// Runs the command on the phantom and reports; the exit code says whether it fits.
pub(crate) fn run(arguments: &RunArguments) -> Result<u8> {
    if let Some(names) = cards::named(arguments) {
        return cards::run(arguments, &names);
    }
    screen::tell(arguments.quiet, arguments.verbose);
    let settings = Settings::resolve(&arguments.into())?;
    let mut outputs = Outputs::check(&asked(arguments))?;
    let gate = Gate::open(&settings, arguments.save_baseline.as_deref())?;
    let world = World::resolve(&arguments.world)?;
    if arguments.verbose {
        for (key, value, origin) in &settings.origins {
            screen::say(&format!("fathom: {key} = {value} ({origin})"));
        }
    }
    let soon = Soon::say(doing(&settings));
    let Seen { mut run, files, ran, folder, _again } =
        see(&arguments.command, &settings, world.as_ref(), arguments.out.as_deref())?;
    drop(soon);
    run.keep_cards_that_are_certain();
    let may_try = world.is_none() && settings.verify != Verify::Off;
    asking::answer(&mut run, arguments, &settings, may_try.then_some(ran));
    gate.judge(&mut run);
    run.next = next(arguments, &run).into_iter().collect();
    if let RunFolder::Kept(kept) = &folder {
        outputs.file(&kept.path().join(page::REPORT), report::json(&run));
    }
    if let Some(path) = &arguments.page {
        let items = page::of_run(&run, &files, &arguments.command.join(" "));
        outputs.file(path, answer::page(items, Vec::new()));
    }
    show(&run, arguments, &mut outputs);
    let exit_code = match run.exit_code {
        0 if arguments.strict && run.judgement().is_uncertain() => 1,
        code => code as u8,
    };
    publish(run, arguments, &gate, &mut outputs);
    Ok(outputs.finish(exit_code))
}

/// What a run does first, in words.
fn doing(settings: &Settings) -> String {
    let gpu = match &settings.card {
        Some(card) => format!("a phantom {}", card.shown_title()),
        None => "a phantom GPU with unlimited memory".to_owned(),
    };
    let until = match settings.steps {
        0 => "until it ends by itself".to_owned(),
        1 => "for 1 step".to_owned(),
        steps => format!("for {steps} steps"),
    };
    format!("running the script on {gpu}, {until}")
}

/// A run, with all that further runs of the same have said, and its files.
pub(super) struct Seen {
    pub(super) run: Run,
    /// The folder of the files of the run that is reported.
    pub(super) files: PathBuf,
    /// When the first run was.
    ran: Window,
    folder: RunFolder,
    /// More runs of the same, with their files, which stay until the report.
    _again: Option<Again>,
}

impl Seen {
    /// The run by itself; its files stay.
    pub(super) fn into_parts(self) -> (Run, PathBuf, Files) {
        (self.run, self.files, Files { _folder: self.folder, _again: self._again })
    }
}

/// The files of a run, which last as long as this.
pub(super) struct Files {
    _folder: RunFolder,
    _again: Option<Again>,
}

/// Runs the command, and runs it again where that says more.
pub(super) fn see(
    command: &[String],
    settings: &Settings,
    world: Option<&World>,
    out: Option<&Path>,
) -> Result<Seen> {
    let launch = Launch::prepare(command)?;
    let folder = RunFolder::make(out)?;
    let since = SystemTime::now();
    let (mut run, mut files) = match world {
        Some(world) => ranks::run(&launch, command, settings, world, folder.path(), false)?,
        None => {
            let ended = launch.run(command, settings, folder.path())?;
            (outcome::read(folder.path(), &ended, settings), folder.path().to_owned())
        }
    };
    let ran = Window { since, until: SystemTime::now() + LATE };
    let _again = match world {
        Some(world) => {
            try_other_ranks(&launch, command, settings, world, (&mut run, &folder, ran))?;
            None
        }
        None if says_more(&run, settings) => {
            match again(command, settings, ran, (&mut run, &folder)) {
                Ok((repeated, short)) => {
                    files = short.unwrap_or(files);
                    Some(repeated)
                }
                // What the first run showed stands.
                Err(error) => {
                    run.notes.push(format!("the script was not run again: {error:#}"));
                    None
                }
            }
        }
        None => None,
    };
    Ok(Seen { run, files, ran, folder, _again })
}

/// Whether the command is run again.
fn says_more(run: &Run, settings: &Settings) -> bool {
    bound::is_open(run, settings)
        || whole::is_wanted(run, settings)
        || verifies(settings) && has_answer(run)
}

fn has_answer(run: &Run) -> bool {
    matches!(run.verdict, Verdict::Fits | Verdict::Grew | Verdict::DoesNotFit)
}

fn verifies(settings: &Settings) -> bool {
    settings.verify != Verify::Off && settings.record && session::ending().is_none()
}

/// Runs it again; the runs' files last as long as the first of the two that are given. The second is the folder of the run
/// that is reported, if that is another one now.
fn again(
    command: &[String],
    settings: &Settings,
    ran: Window,
    (run, folder): (&mut Run, &RunFolder),
) -> Result<(Again, Option<PathBuf>)> {
    let mut repeated = Again::new(command, settings, (run, ran))?;
    let short = repeat(&mut repeated, run, settings, folder.path())?;
    if let Some(short) = &short {
        folder.replace_by(short)?;
    }
    run.notes.extend(repeated.notes());
    Ok((repeated, short))
}

/// Runs the command again, in as many ways as say more: with other values, as a shortened training, on other sizes. If the
/// report is about another run than the first, the folder of that one's files is given.
fn repeat(
    again: &mut Again,
    run: &mut Run,
    settings: &Settings,
    plain: &Path,
) -> Result<Option<PathBuf>> {
    if bound::is_open(run, settings) {
        run.most = again.most(None, (run, plain))?;
        settle(run);
    }
    let short = match whole::is_wanted(run, settings) {
        true => whole::see(again, run, plain)?,
        false => None,
    };
    if verifies(settings) {
        again.add_to(run)?;
    }
    Ok(short)
}

/// What ranks need with other values.
fn try_other_ranks(
    launch: &Launch,
    command: &[String],
    settings: &Settings,
    world: &World,
    (run, folder, ran): (&mut Run, &RunFolder, Window),
) -> Result<()> {
    if bound::is_open(run, settings) {
        let confined = Some(Confined { by: By::Launcher, unseen: Some(ran) });
        let settings = Settings { confined, ..settings.clone() };
        let first = (&*run, folder.path());
        run.most = bound::most_of_ranks(launch, command, &settings, world, first)?;
        settle(run);
    }
    Ok(())
}

fn settle(run: &mut Run) {
    if run.most.as_ref().is_some_and(|most| most.is_same) {
        outcome::settle(run);
    }
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
    let reader = screen::reader();
    let text = match arguments.quiet {
        true => report::answer(run, reader),
        false => report::terminal(run, reader, &arguments.unfold.into()),
    };
    let is_terminal = std::io::stdout().is_terminal();
    let text = if is_terminal && !arguments.quiet { format!("\n{text}") } else { text };
    outputs.print(&text);
}

/// Where the processes of a run leave their files: kept on request, else gone with the run.
enum RunFolder {
    Kept(Kept),
    Temporary(Folder),
}

impl RunFolder {
    fn make(out: Option<&Path>) -> Result<RunFolder> {
        Ok(match out {
            Some(out) => RunFolder::Kept(Kept::open(out)?),
            None => RunFolder::Temporary(Folder::new("run")?),
        })
    }

    /// What is kept belongs to the run that is reported.
    fn replace_by(&self, other: &Path) -> Result<()> {
        match self {
            RunFolder::Kept(kept) => kept.replace_by(other).context("`--out` cannot be written"),
            RunFolder::Temporary(_) => Ok(()),
        }
    }

    fn path(&self) -> &Path {
        match self {
            RunFolder::Kept(kept) => kept.path(),
            RunFolder::Temporary(folder) => folder.path(),
        }
    }
}
