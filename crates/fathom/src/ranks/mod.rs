//! Runs the ranks that are asked for, as many at once as the scheduler allows, and puts their answers side by
//! side. What each of several ranks prints is shown when it and all before it have ended, in their order.
//!
//! A rank that needs what only another knows leaves what it has to say, says whose letter it waits
//! for, and stops; it runs again when that letter is there. When all wait and none is left that has
//! not tried, they wait for each other, and only a world in which all run at once could answer.
//!
//! After a rank that fails, later ones would fail in the same way: none is started, and one that ran at the same
//! time is left out, so that the answer is the same for every number of jobs.

mod attempt;
mod order;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use study::{Decision, Rank, Ranks, Run, Verdict};

use self::attempt::Attempts;
use self::order::{Order, interrupted};
use crate::jobs::Jobs;
use crate::launch::Launch;
use crate::outcome;
use crate::session::{self, Folder};
use crate::settings::Settings;
use crate::world::World;

/// Where ranks leave letters, in the folder of the run.
pub(crate) const LETTERS: &str = "letters";

/// What every number of a rank rests on.
const ALIKE: &str = "other ranks were taken to do what this one does";

/// The run of the rank that needs most, with a row for each rank, and that rank's folder. If it is quiet, what they print
/// is dropped.
pub(crate) fn run(
    launch: &Launch,
    command: &[String],
    settings: &Settings,
    world: &World,
    folder: &Path,
    is_quiet: bool,
) -> Result<(Run, PathBuf)> {
    let began = Instant::now();
    let aside = Folder::new("ranks")?;
    let attempts = Attempts { launch, command, settings, world, folder, aside, is_quiet };
    let mut order = Order::new(&attempts);
    Jobs::new(settings.jobs).run(&mut order, |rank, is| attempts.run(*rank, is))?;
    order.finish()?;
    let done = order.done;
    Answer { world, folder, done }.report(began.elapsed().as_secs_f64())
}

/// What ranks gave, to be put side by side.
struct Answer<'a> {
    world: &'a World,
    folder: &'a Path,
    done: BTreeMap<u32, Run>,
}

impl Answer<'_> {
    /// Ranks that were asked for and did not run, as a note.
    fn not_run(&mut self) -> Option<String> {
        let ran = |run: &Run| run.wall_seconds != 0.0;
        if self.done.values().any(ran) {
            self.done.retain(|_, run| ran(run));
        }
        let missing = self.world.ranks.iter().filter(|rank| !self.done.contains_key(rank));
        let missing: Vec<String> = missing.map(u32::to_string).collect();
        session::ending().filter(|_| !missing.is_empty())?;
        Some(format!("not run any more: rank {}", missing.join(", ")))
    }

    fn report(mut self, seconds: f64) -> Result<(Run, PathBuf)> {
        let not_run = self.not_run();
        let asked = self.done.iter().filter(|(rank, _)| self.world.ranks.contains(rank));
        let worst = asked.max_by_key(|(rank, run)| {
            let device_bytes = run.peak.as_ref().map_or(0, |peak| peak.device_bytes);
            (weight(run.verdict), device_bytes, u32::MAX - **rank)
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
        // The report is about one rank; what could not be read of the others is said all the same.
        let others = self.done.keys().filter(|rank| **rank != worst);
        let unread: Vec<String> = others.flat_map(|rank| self.unread(*rank)).collect();
        let folder = session::rank(self.folder, worst);
        let mut run = self.done.remove(&worst).context("no rank ran")?;
        // The verdict is about all of them.
        for decision in self.done.values_mut().flat_map(|other| other.decisions.drain(..)) {
            let is_known = |known: &Decision| known.to_string() == decision.to_string();
            if !run.decisions.iter().any(is_known) {
                run.decisions.push(decision);
            }
        }
        run.wall_seconds = seconds;
        let signal = session::ending().filter(|_| not_run.is_some());
        if let (Verdict::Fits, Some(signal)) = (run.verdict, signal) {
            // Those that ran fit; of the others nothing is known.
            run = interrupted(run, signal);
        }
        run.warnings.extend(unread);
        run.ranks = Some(ranks);
        run.notes.push(ALIKE.to_owned());
        run.notes.extend(not_run);
        Ok((run, folder))
    }

    fn unread(&self, rank: u32) -> Vec<String> {
        let said = outcome::unread(&session::rank(self.folder, rank));
        said.into_iter().map(|note| format!("rank {rank}: {note}")).collect()
    }
}

/// What a failure weighs beside what others show: the report is about the heaviest.
fn weight(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Fits => 0,
        Verdict::Interrupted | Verdict::TimedOut => 1,
        Verdict::DoesNotFit | Verdict::Grew => 2,
        Verdict::ScriptFailed => 3,
    }
}
