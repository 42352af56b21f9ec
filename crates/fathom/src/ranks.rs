//! Runs the ranks that are asked for, two at a time if there are cores for them, and puts their answers
//! side by side. What ranks print that run together is shown when they have ended, in their order.
//!
//! A rank that needs what only another knows leaves what it has to say, says whose letter it waits
//! for, and stops; it runs again when that letter is there. When all wait and none is left that has
//! not tried, they wait for each other, and only a world in which all run at once could answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use contract::files::{File, Unanswered, Waits};
use study::{Decision, Rank, Ranks, Run, Unfinished, Verdict};

use crate::launch::Launch;
use crate::outcome;
use crate::screen;
use crate::session::{self, Folder};
use crate::settings::Settings;
use crate::world::World;

/// Where ranks leave letters, in the folder of the run.
pub(crate) const LETTERS: &str = "letters";

/// Ranks that run at the same time: each may need gigabytes of the host's memory.
const SIDE_BY_SIDE: usize = 2;

/// What every number of a rank rests on.
const ALIKE: &str = "other ranks were taken to do what this one does";

/// Runs ranks of one world; each has a folder of its own.
pub(crate) struct RankRunner<'a> {
    launch: &'a Launch,
    command: &'a [String],
    settings: &'a Settings,
    world: &'a World,
    folder: &'a Path,
    /// What ranks tell each other, and what they print until it is shown.
    aside: Folder,
    done: BTreeMap<u32, Run>,
    /// Ranks that stopped half-way, with what they gave until then.
    waiting: BTreeMap<u32, (Run, Waits)>,
    /// Whether what they print is dropped.
    is_quiet: bool,
}

impl<'a> RankRunner<'a> {
    /// Nothing runs yet.
    pub(crate) fn new(
        launch: &'a Launch,
        command: &'a [String],
        settings: &'a Settings,
        world: &'a World,
        folder: &'a Path,
    ) -> Result<RankRunner<'a>> {
        let (done, waiting) = (BTreeMap::new(), BTreeMap::new());
        let aside = Folder::new("ranks")?;
        let is_quiet = false;
        Ok(RankRunner { launch, command, settings, world, folder, aside, done, waiting, is_quiet })
    }

    /// What they print is dropped.
    pub(crate) fn quietly(self) -> RankRunner<'a> {
        RankRunner { is_quiet: true, ..self }
    }

    /// The run of the rank that needs most, with a row for each rank, and that rank's folder.
    pub(crate) fn run(mut self) -> Result<(Run, PathBuf)> {
        let began = Instant::now();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        loop {
            let mut together: Vec<u32> = Vec::new();
            while together.len() < cores.min(SIDE_BY_SIDE) {
                let Some(rank) = self.next(&together) else { break };
                together.push(rank);
            }
            let mut has_failed = false;
            for (rank, (run, waits)) in together.iter().zip(self.attempt_all(&together)?) {
                has_failed |= run.failure.is_some() && waits.is_none();
                match waits {
                    Some(waits) => drop(self.waiting.insert(*rank, (run, waits))),
                    None => drop(self.done.insert(*rank, run)),
                }
            }
            if together.is_empty() || has_failed {
                break; // after a failure the others would fail in the same way
            }
        }
        self.give_up_waiting();
        self.report(began.elapsed().as_secs_f64())
    }

    /// One more rank to run: one whose letter has come, else one that is asked for, else, if nobody else
    /// runs, one that is waited for.
    fn next(&mut self, together: &[u32]) -> Option<u32> {
        if self.world.ranks.iter().all(|rank| self.done.contains_key(rank)) {
            return None;
        }
        let letters = self.letters();
        let ready =
            self.waiting.iter().find(|(_, (_, waits))| letters.join(&waits.letter).exists());
        if let Some(rank) = ready.map(|(rank, _)| *rank) {
            self.waiting.remove(&rank);
            return Some(rank);
        }
        let tried = self.done.keys().chain(self.waiting.keys()).chain(together);
        let tried: BTreeSet<u32> = tried.copied().collect();
        let is_new = |rank: &u32| !tried.contains(rank) && *rank < self.world.size;
        // Who ran for another's sake shows that ranks wait: then they run one after the other.
        let is_free = together.is_empty() || self.waiting.is_empty();
        if let Some(rank) = self.world.ranks.iter().copied().find(|rank| is_free && is_new(rank)) {
            return Some(rank);
        }
        let mut waits = self.waiting.values().map(|(_, waits)| waits);
        let waits = waits.find(|waits| together.is_empty() && is_new(&waits.sender))?;
        let Waits { rank, sender, call, .. } = waits;
        if !self.is_quiet {
            screen::say(&format!(
                "fathom: rank {rank} needs data of rank {sender} ({call}): rank {sender} runs too"
            ));
        }
        Some(*sender)
    }

    fn letters(&self) -> PathBuf {
        self.aside.path().join(LETTERS)
    }

    /// Who still waits waits for ever, unless a signal keeps the sender from running.
    fn give_up_waiting(&mut self) {
        let all: Vec<Waits> = self.waiting.values().map(|(_, waits)| waits.clone()).collect();
        for (rank, (run, waits)) in std::mem::take(&mut self.waiting) {
            let run = match session::ending() {
                Some(signal) => interrupted(run, signal),
                None => failed(run, &waits, &all),
            };
            self.done.insert(rank, run);
        }
    }

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

    /// Runs these at the same time; one alone prints as it goes.
    fn attempt_all(&self, ranks: &[u32]) -> Result<Vec<(Run, Option<Waits>)>> {
        if let ([rank], false) = (ranks, self.is_quiet) {
            return Ok(vec![self.attempt(*rank, None)?]);
        }
        let printed = |rank: u32, name: &str| self.aside.path().join(format!("{name}.{rank}"));
        let results: Vec<Result<(Run, Option<Waits>)>> = std::thread::scope(|scope| {
            let start = |rank: u32| {
                let [output, errors] = ["output", "errors"].map(|name| printed(rank, name));
                scope.spawn(move || self.attempt(rank, Some([&output, &errors])))
            };
            let running: Vec<_> = ranks.iter().map(|rank| start(*rank)).collect();
            let failed = |_| Err(anyhow!("the thread of a rank failed"));
            running.into_iter().map(|run| run.join().unwrap_or_else(failed)).collect()
        });
        for rank in ranks.iter().filter(|_| !self.is_quiet) {
            show(&printed(*rank, "output"), &mut std::io::stdout().lock())?;
            show(&printed(*rank, "errors"), &mut std::io::stderr().lock())?;
        }
        results.into_iter().collect()
    }

    fn attempt(&self, rank: u32, apart: Option<[&Path; 2]>) -> Result<(Run, Option<Waits>)> {
        let folder = session::make_rank(self.folder, rank)?;
        let place = self.world.place(rank, &self.letters());
        let settings = Settings { place: Some(place), ..self.settings.clone() };
        let ended = match apart {
            None => self.launch.run(self.command, &settings, &folder)?,
            Some(printed) => self.launch.run_apart(self.command, &settings, &folder, printed)?,
        };
        let mut run = outcome::read(&folder, &ended, &settings);
        if run.failure.is_some() {
            run.failure = left::<Unanswered>(&folder).map(|call| call.message).or(run.failure);
        }
        // A script that went on without the letter gave its answer.
        Ok((run, left(&folder).filter(|_| !ended.status.success())))
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

/// What a failure weighs beside what others show: the report is about the heaviest.
fn weight(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Fits => 0,
        Verdict::Interrupted | Verdict::TimedOut => 1,
        Verdict::DoesNotFit | Verdict::Grew => 2,
        Verdict::ScriptFailed => 3,
    }
}

/// A rank that might have gone on, had not a signal ended everything.
fn interrupted(mut run: Run, signal: i32) -> Run {
    let unfinished = Unfinished { signal: Some(session::name(signal)), seconds: run.wall_seconds };
    (run.verdict, run.exit_code) = (unfinished.verdict(), outcome::UNFINISHED);
    run.failure = Some(unfinished.to_string());
    run.unfinished = Some(unfinished);
    run
}

/// What a rank says in a file of this kind. One of which a part is missing counts as none: the run has a warning.
fn left<T: File>(folder: &Path) -> Option<T> {
    let whole = outcome::read_each(folder).into_iter().filter(|file| file.is_whole);
    whole.filter_map(|file| file.value).next()
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
