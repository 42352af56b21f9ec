//! One rank runs, from its start to its end or to where it waits for another's letter.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use contract::files::{File, Unanswered, Waits};
use study::Run;

use super::LETTERS;
use crate::jobs::Started;
use crate::launch::Launch;
use crate::outcome;
use crate::session::{self, Folder, Streams};
use crate::settings::Settings;
use crate::world::World;

/// What every attempt needs; each rank has a folder of its own.
pub(super) struct Attempts<'a> {
    pub(super) launch: &'a Launch,
    pub(super) command: &'a [String],
    pub(super) settings: &'a Settings,
    pub(super) world: &'a World,
    pub(super) folder: &'a Path,
    /// What ranks tell each other, and what they print until it is shown.
    pub(super) aside: Folder,
    /// Whether what they print is dropped.
    pub(super) is_quiet: bool,
}

impl Attempts<'_> {
    /// Of several ranks each prints into files; one alone prints as it goes, unless nobody wants to see it.
    pub(super) fn are_apart(&self) -> bool {
        self.is_quiet || 1 < self.world.ranks.len()
    }

    pub(super) fn letters(&self) -> PathBuf {
        self.aside.path().join(LETTERS)
    }

    /// What a rank gave, and whose letter it waits for if it does.
    pub(super) fn run(&self, rank: u32, is: &Started) -> Result<(Run, Option<Waits>)> {
        let folder = session::make_rank(self.folder, rank)?;
        let place = self.world.place(rank, &self.letters());
        let settings = Settings { place: Some(place), ..self.settings.clone() };
        let streams = match self.are_apart() {
            true => {
                let [output, errors] = self.printed(rank);
                Streams::to_files(&output, &errors)?
            }
            false => Streams::default(),
        };
        let ended = self.launch.run_with(self.command, &settings, &folder, streams, is)?;
        let mut run = outcome::read(&folder, &ended, &settings);
        if run.failure.is_some() {
            run.failure = left::<Unanswered>(&folder).map(|call| call.message).or(run.failure);
        }
        // A script that went on without the letter gave its answer.
        Ok((run, left(&folder).filter(|_| !ended.status.success())))
    }

    fn printed(&self, rank: u32) -> [PathBuf; 2] {
        ["output", "errors"].map(|name| self.aside.path().join(format!("{name}.{rank}")))
    }

    /// Shows what the last attempt of a rank printed.
    pub(super) fn show(&self, rank: u32) -> Result<()> {
        if self.is_quiet {
            return Ok(());
        }
        let [output, errors] = self.printed(rank);
        show(&output, &mut std::io::stdout().lock())?;
        show(&errors, &mut std::io::stderr().lock())
    }
}

/// What a rank printed, and nothing of it is left.
fn show(file: &Path, to: &mut impl Write) -> Result<()> {
    match std::io::copy(&mut fs::File::open(file)?, to).and_then(|_| to.flush()) {
        // Nobody reads it any more.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        other => other?,
    }
    Ok(fs::remove_file(file)?)
}

/// What a rank says in a file of this kind. One of which a part is missing counts as none: the run has a warning.
fn left<T: File>(folder: &Path) -> Option<T> {
    let whole = outcome::read_each(folder).into_iter().filter(|file| file.is_whole);
    whole.filter_map(|file| file.value).next()
}
