//! Trials: the same command again and again, with other words, variables and cards.
//!
//! A Python script is run by a warm process (`python/fathom/_warm/server.py`) that has imported its libraries
//! already and forks itself per trial; any other command starts cold. The scheduler (`jobs`) says how many run
//! at once, of both kinds. What a trial gives is what `fathom run` would give: the same files, read by the same
//! code.

mod python_command;
mod server;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use contract::environment as name;
use study::{Run, Verdict};

pub(crate) use self::python_command::take_apart;
use self::server::{Request, Server};
use crate::cache;
use crate::installed;
use crate::jobs::{Jobs, Queue, Started};
use crate::launch::{self, Launch};
use crate::outcome;
use crate::session::{self, Ended, Streams};
use crate::settings::Settings;

/// Characters of a line that cannot be read that are shown.
const SHOWN: usize = 60;

/// File of a trial's folder that takes what the script prints.
const OUTPUT: &str = "output";

#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The whole command.
    pub(crate) words: Vec<String>,
    /// Variables beside those of a run.
    pub(crate) environment: Vec<(String, String)>,
    /// The card, the steps, whether it is recorded.
    pub(crate) settings: Settings,
    /// Whether it must start in a process of its own.
    pub(crate) cold: bool,
    /// Its own empty folder; what it leaves stays there.
    pub(crate) folder: PathBuf,
}

impl Job {
    /// What the script printed, its last lines.
    pub(crate) fn last_lines(&self, count: usize) -> String {
        let bytes = std::fs::read(self.folder.join(OUTPUT)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}

pub(crate) struct Trials {
    launch: Launch,
    server: Option<Server>,
    start: Option<Vec<String>>,
    /// What the warm process said and nobody understood, as a sentence.
    pub(crate) unread: Option<String>,
}

impl Trials {
    /// Finds the command's Python and, for a script of Python, starts the warm process.
    pub(crate) fn prepare(command: &[String], settings: &Settings) -> Result<Trials> {
        let launch = Launch::prepare(command)?;
        let apart = take_apart(command);
        let server = apart.as_ref().and_then(|words| {
            let folder = installed::temporary();
            let start = on_its_own(launch.command(&words.start, settings, &folder));
            Server::start(start, &installed::doorway().ok()?.join("_warm/server.py"), &words.rest)
        });
        Ok(Trials { launch, server, start: apart.map(|words| words.start), unread: None })
    }

    /// Whether trials are forked from a warm process, or were before a signal ended it.
    pub(crate) fn is_warm(&self) -> bool {
        self.server.is_some() || self.start.is_some() && session::ending().is_some()
    }

    /// Runs all, and gives what came of them in the order given. `done` is called when one has ended.
    pub(crate) fn run_all(
        &mut self,
        scheduler: &mut Jobs,
        jobs: &[&Job],
        done: impl FnMut(usize, &Run),
    ) -> Result<Vec<Run>> {
        let waiting = (0..jobs.len()).map(|index| Attempt { index, cold: false }).collect();
        let mut queue = Attempts { waiting, runs: vec![None; jobs.len()], done };
        let work = |attempt: &Attempt, is: &Started| self.attempt(attempt, jobs[attempt.index], is);
        let result = scheduler.run(&mut queue, work);
        if let Some(unread) = self.server.as_ref().and_then(Server::is_over) {
            self.server = None;
            self.unread = self.unread.take().or(unread.map(|line| cannot_read(&line)));
        }
        result.map(|()| queue.runs.into_iter().flatten().collect())
    }

    /// Warm if it can be; `None` if it has to be made again, in a process of its own.
    fn attempt(&self, attempt: &Attempt, job: &Job, is: &Started) -> Result<Option<Run>> {
        let read = |ended: Ended| outcome::read(&job.folder, &ended, &job.settings);
        if let Some(signal) = session::ending() {
            return Ok(Some(read(Ended::before_it_began(signal))));
        }
        let server = self.server.as_ref().filter(|_| !attempt.cold);
        let Some((server, request)) = server.zip(self.request(attempt.index, job)) else {
            if job.settings.short.is_some() {
                // Only a process that was forked can be kept from writing elsewhere before anything runs in it.
                return Ok(Some(read(Ended::earlier(0.0, true))));
            }
            return Ok(Some(read(self.run_cold(job, is)?)));
        };
        let run = server.run(&request, &job.settings, is).map(read);
        // What fails or hangs in a forked process might be the fork's doing.
        let is_short = job.settings.short.is_some();
        let is_answer = |run: &Run| {
            is_short || !matches!(run.verdict, Verdict::ScriptFailed | Verdict::TimedOut)
        };
        Ok(run.filter(is_answer))
    }

    /// The trial as the warm process wants it; `None` if it must start cold.
    fn request(&self, number: usize, job: &Job) -> Option<Request> {
        let apart = take_apart(&job.words).filter(|_| !job.cold)?;
        if Some(&apart.start) != self.start.as_ref() {
            return None;
        }
        let command = self.command(job);
        let text = |text: &std::ffi::OsStr| text.to_str().map(str::to_owned);
        let mut environment = BTreeMap::new();
        for (name, value) in command.get_envs() {
            environment.insert(text(name)?, value.map(text).map_or(Some(None), |v| v.map(Some))?);
        }
        Some(Request {
            number,
            words: apart.rest,
            environment,
            folder: text(std::env::current_dir().ok()?.as_os_str())?,
            output: text(job.folder.join(OUTPUT).as_os_str())?,
        })
    }

    fn command(&self, job: &Job) -> Command {
        let command = self.launch.command(&job.words, &job.settings, &job.folder);
        let mut command = on_its_own(command);
        // A shortened training is not remembered: what it reads may be what it wrote itself.
        command.env(name::SOURCES, if job.settings.short.is_none() { "on" } else { "off" });
        command.envs(job.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// In a process of its own.
    fn run_cold(&self, job: &Job, is: &Started) -> Result<Ended> {
        clear(&job.folder)?;
        let streams = Streams::to_file(&job.folder.join(OUTPUT))?;
        launch::follow(&self.command(job), &job.settings, streams, is)
    }
}

/// A trial to be made, by its index.
struct Attempt {
    index: usize,
    cold: bool,
}

/// Trials in the order given, and those that are made again behind them.
struct Attempts<D> {
    waiting: VecDeque<Attempt>,
    runs: Vec<Option<Run>>,
    done: D,
}

impl<D: FnMut(usize, &Run)> Queue for Attempts<D> {
    type Job = Attempt;
    type Answer = Result<Option<Run>>;

    fn next(&mut self, _: &[&Attempt]) -> Option<Attempt> {
        self.waiting.pop_front()
    }

    fn ended(&mut self, attempt: &Attempt, run: Result<Option<Run>>) -> Result<()> {
        match run? {
            Some(run) => {
                (self.done)(attempt.index, &run);
                self.runs[attempt.index] = Some(run);
            }
            None => self.waiting.push_back(Attempt { index: attempt.index, cold: true }),
        }
        Ok(())
    }
}

/// The same question has the same answer in every job of a batch system.
fn on_its_own(mut command: Command) -> Command {
    for name in cache::of_batch_system() {
        command.env_remove(name);
    }
    command
}

fn cannot_read(line: &str) -> String {
    let line: String = line.chars().take(SHOWN).collect();
    format!("the warm process said what cannot be read (`{line}`): trials start Python anew")
}

/// What a first attempt left must not be taken for the second's.
fn clear(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)?.flatten() {
        if entry.path().is_file() {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
