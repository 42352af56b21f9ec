//! Runs the ranks that are asked for, one after the other, and puts their answers side by side.
//!
//! A rank that needs what only another knows leaves what it has to say, says whose letter it waits
//! for, and stops; it runs again when that letter is there. When all wait and none is left that has
//! not tried, they wait for each other, and only a world in which all run at once could answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use report::{Rank, Ranks, Run, Verdict};
use serde::Deserialize;

use crate::launch::Launch;
use crate::outcome;
use crate::settings::Settings;
use crate::world::World;

/// Where ranks leave letters, in the folder of the run.
pub(crate) const LETTERS: &str = "letters";

/// What every number of a rank rests on.
const ALIKE: &str = "other ranks were taken to do what this one does; work on all streams is done at once: \
    memory that a collective still used on a real card is free a little later there";

/// `waits.<pid>.json`, written by a rank that cannot go on.
#[derive(Clone, Debug, Deserialize)]
struct Waits {
    rank: u32,
    sender: u32,
    /// The letter's file, in the folder of letters.
    letter: PathBuf,
    call: String,
}

/// Runs ranks of one world; each has a folder of its own.
pub(crate) struct RankRunner<'a> {
    launch: &'a Launch,
    command: &'a [String],
    settings: &'a Settings,
    world: &'a World,
    folder: &'a Path,
    done: BTreeMap<u32, Run>,
    /// Ranks that stopped half-way, with what they gave until then.
    waiting: BTreeMap<u32, (Run, Waits)>,
}

impl<'a> RankRunner<'a> {
    /// Nothing runs yet.
    pub(crate) fn new(
        launch: &'a Launch,
        command: &'a [String],
        settings: &'a Settings,
        world: &'a World,
        folder: &'a Path,
    ) -> RankRunner<'a> {
        let (done, waiting) = (BTreeMap::new(), BTreeMap::new());
        RankRunner { launch, command, settings, world, folder, done, waiting }
    }

    /// The run of the rank that needs most, with a row for each rank, and that rank's folder.
    pub(crate) fn run(mut self) -> Result<(Run, PathBuf)> {
        while let Some(rank) = self.next() {
            let (run, waits) = self.attempt(rank)?;
            match waits {
                Some(waits) => drop(self.waiting.insert(rank, (run, waits))),
                None => {
                    let has_failed = run.failure.is_some();
                    self.done.insert(rank, run);
                    if has_failed {
                        break; // the others would fail in the same way
                    }
                }
            }
        }
        self.give_up_waiting();
        self.report()
    }

    /// The next rank to run: one whose letter has come, else one that is asked for, else one that is
    /// waited for.
    fn next(&mut self) -> Option<u32> {
        if self.world.ranks.iter().all(|rank| self.done.contains_key(rank)) {
            return None;
        }
        let letters = self.folder.join(LETTERS);
        let ready =
            self.waiting.iter().find(|(_, (_, waits))| letters.join(&waits.letter).exists());
        if let Some(rank) = ready.map(|(rank, _)| *rank) {
            self.waiting.remove(&rank);
            return Some(rank);
        }
        let tried: BTreeSet<u32> = self.done.keys().chain(self.waiting.keys()).copied().collect();
        let is_new = |rank: &u32| !tried.contains(rank) && *rank < self.world.size;
        if let Some(rank) = self.world.ranks.iter().copied().find(is_new) {
            return Some(rank);
        }
        let waits = self.waiting.values().map(|(_, waits)| waits).find(|w| is_new(&w.sender))?;
        let Waits { rank, sender, call, .. } = waits;
        eprintln!(
            "fathom: rank {rank} needs data of rank {sender} ({call}): rank {sender} runs too"
        );
        Some(*sender)
    }

    /// Who still waits waits for ever.
    fn give_up_waiting(&mut self) {
        let all: Vec<Waits> = self.waiting.values().map(|(_, waits)| waits.clone()).collect();
        for (rank, (run, waits)) in std::mem::take(&mut self.waiting) {
            self.done.insert(rank, failed(run, &waits, &all));
        }
    }

    fn report(mut self) -> Result<(Run, PathBuf)> {
        let asked = self.done.iter().filter(|(rank, _)| self.world.ranks.contains(rank));
        let worst = asked.max_by_key(|(rank, run)| {
            let device_bytes = run.peak.as_ref().map_or(0, |peak| peak.device_bytes);
            (run.exit_code, device_bytes, u32::MAX - **rank)
        });
        let worst = *worst.context("no rank ran")?.0;
        let rows = self.done.iter().map(|(&rank, run)| {
            let is_asked = self.world.ranks.contains(&rank);
            Rank::of(rank, is_asked, run)
        });
        let ranks = Ranks {
            world_size: self.world.size,
            per_node: self.world.per_node,
            worst,
            rows: rows.collect(),
        };
        let folder = self.folder.join(folder_of(worst));
        let seconds = self.done.values().map(|run| run.wall_seconds).sum();
        let mut run = self.done.remove(&worst).context("no rank ran")?;
        run.wall_seconds = seconds;
        run.ranks = Some(ranks);
        run.notes.push(ALIKE.to_owned());
        Ok((run, folder))
    }

    fn attempt(&self, rank: u32) -> Result<(Run, Option<Waits>)> {
        let folder = self.folder.join(folder_of(rank));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make `{}`", folder.display()))?;
        let place = self.world.place(rank, &self.folder.join(LETTERS));
        let settings = Settings { place: Some(place), ..self.settings.clone() };
        let ended = self.launch.run(self.command, &settings, &folder)?;
        let mut run = outcome::read(&folder, &ended, &settings);
        if run.failure.is_some() {
            run.failure = left(&folder, "unanswered.").or(run.failure);
        }
        // A script that went on without the letter gave its answer.
        Ok((run, waits(&folder).filter(|_| !ended.status.success())))
    }
}

fn folder_of(rank: u32) -> String {
    format!("rank-{rank}")
}

fn waits(folder: &Path) -> Option<Waits> {
    serde_json::from_str(&left(folder, "waits.")?).ok()
}

/// The first file whose name begins so, as text.
fn left(folder: &Path, start: &str) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let file = entries.map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
    })?;
    fs::read_to_string(file).ok()
}

/// A rank that waits for what nobody sends.
fn failed(mut run: Run, waits: &Waits, all: &[Waits]) -> Run {
    let Waits { rank, sender, call, .. } = waits;
    let mut why = format!("rank {rank} waits in {call} for data of rank {sender}");
    why += &match all.iter().find(|other| other.rank == *sender) {
        Some(other) => format!(
            ", which waits for rank {} in {}: only a world in which both run at once can answer that",
            other.sender, other.call
        ),
        None => ", which did not send it".to_owned(),
    };
    run.verdict = Verdict::ScriptFailed;
    run.exit_code = 3;
    run.failure = Some(why);
    run
}
