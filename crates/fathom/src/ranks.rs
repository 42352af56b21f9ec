//! Runs the ranks that are asked for, one after the other, and puts their answers side by side.
//!
//! A rank that needs what only another knows says so and stops: that rank runs first then, and
//! leaves its letters. Two that wait for each other cannot be answered this way.

use std::collections::BTreeMap;
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

/// `waits.<pid>.json`, written by a rank that cannot go on.
#[derive(Debug, Deserialize)]
struct Waits {
    rank: u32,
    sender: u32,
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
    /// Ranks that are under way: each waits for the next.
    waiting: Vec<Waits>,
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
        let (done, waiting) = (BTreeMap::new(), Vec::new());
        RankRunner { launch, command, settings, world, folder, done, waiting }
    }

    /// The run of the rank that needs most, with a row for each rank, and that rank's folder.
    pub(crate) fn run(mut self) -> Result<(Run, PathBuf)> {
        for &rank in &self.world.ranks {
            self.run_rank(rank)?;
            if self.done.get(&rank).is_some_and(|run| run.failure.is_some()) {
                break; // the others would fail in the same way
            }
        }
        let worst = self.done.iter().max_by_key(|(rank, run)| {
            (
                run.exit_code,
                run.peak.as_ref().map_or(0, |peak| peak.device_bytes),
                u32::MAX - **rank,
            )
        });
        let (&worst, run) = worst.context("no rank ran")?;
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
        let mut run = run.clone();
        run.wall_seconds = self.done.values().map(|run| run.wall_seconds).sum();
        run.ranks = Some(ranks);
        Ok((run, self.folder_of(worst)))
    }

    fn folder_of(&self, rank: u32) -> PathBuf {
        self.folder.join(format!("rank-{rank}"))
    }

    fn run_rank(&mut self, rank: u32) -> Result<()> {
        if self.done.contains_key(&rank) {
            return Ok(());
        }
        loop {
            let (run, waits) = self.attempt(rank)?;
            let Some(waits) = waits else {
                self.done.insert(rank, run);
                return Ok(());
            };
            let sender = waits.sender;
            let is_answered = self.done.contains_key(&sender);
            let is_circle = sender == rank || self.waiting.iter().any(|other| other.rank == sender);
            if is_answered || is_circle || self.world.size <= sender {
                self.done.insert(rank, failed(run, &waits, &self.waiting, is_circle));
                return Ok(());
            }
            eprintln!(
                "fathom: rank {rank} needs data of rank {sender} ({}): rank {sender} runs first",
                waits.call
            );
            self.waiting.push(waits);
            self.run_rank(sender)?;
            let waits = self.waiting.pop();
            if self.done.get(&sender).is_some_and(|run| run.verdict != Verdict::Fits) {
                let waits = waits.context("a rank that waited")?;
                self.done.insert(rank, failed(run, &waits, &self.waiting, false));
                return Ok(());
            }
        }
    }

    fn attempt(&self, rank: u32) -> Result<(Run, Option<Waits>)> {
        let folder = self.folder_of(rank);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make `{}`", folder.display()))?;
        let letters = self.folder.join(LETTERS);
        let place = self.world.place(rank, &letters);
        let settings = Settings { place: Some(place), ..self.settings.clone() };
        let ended = self.launch.run(self.command, &settings, &folder)?;
        let waits = waits(&folder);
        let run = outcome::read(&folder, &ended, &settings);
        // A script that caught the message and went on without it gave its answer.
        Ok((run, waits.filter(|_| !ended.status.success())))
    }
}

fn waits(folder: &Path) -> Option<Waits> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let file = entries.map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("waits."))
    })?;
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

/// A rank that waits for what nobody sends.
fn failed(mut run: Run, waits: &Waits, others: &[Waits], is_circle: bool) -> Run {
    let Waits { rank, sender, call } = waits;
    let mut why = format!("rank {rank} waits in {call} for data of rank {sender}");
    why += &match others.iter().find(|other| other.rank == *sender) {
        Some(other) if is_circle => format!(
            ", which waits for rank {} in {}: only a world in which both run at once can answer that",
            other.sender, other.call
        ),
        _ => ", which ran and did not send it".to_owned(),
    };
    run.verdict = Verdict::ScriptFailed;
    run.exit_code = 3;
    run.failure = Some(why);
    run
}
