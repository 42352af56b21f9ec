//! Trials: the same command again and again, with other words, variables and cards.
//!
//! A Python script is run by a warm process (`python/fathom/_warm/server.py`) that has imported its libraries
//! already and forks itself per trial; any other command starts cold. The scheduler (`jobs`) says how many run
//! at once, of both kinds. What a trial gives is what `fathom run` would give: the same files, read by the same
//! code.

mod python_command;
mod server;
mod way;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use contract::environment as name;
use contract::files::UNCONFINED_FILE;
use study::{Run, Verdict};

pub(crate) use self::python_command::take_apart;
use self::server::{Request, Server};
use self::way::Way;
pub(crate) use self::way::{Guard, speaks_of_refusal, was_refused};
use crate::cache;
use crate::confined::{By, SCRATCH};
use crate::copied::Copied;
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
    pub(crate) guard: Guard,
    /// Its own empty folder; what it leaves stays there.
    pub(crate) folder: PathBuf,
    /// Where it runs, if not in the folder that the command was given in.
    pub(crate) copied: Option<Copied>,
}

impl Job {
    /// A text that names files of the copy, as one that names the originals.
    pub(crate) fn original(&self, text: String) -> String {
        match &self.copied {
            Some(Copied { copy, root, .. }) => {
                text.replace(copy.to_string_lossy().as_ref(), root.to_string_lossy().as_ref())
            }
            None => text,
        }
    }

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
    /// How the last trial was made that went through.
    best: Mutex<Option<Way>>,
    unconfined: Mutex<Option<String>>,
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
        let start = apart.map(|words| words.start);
        let (best, unconfined) = (Mutex::new(None), Mutex::new(None));
        Ok(Trials { launch, server, start, best, unconfined, unread: None })
    }

    /// Whether trials are forked from a warm process, or were before a signal ended it.
    pub(crate) fn is_warm(&self) -> bool {
        self.server.is_some() || self.start.is_some() && session::ending().is_some()
    }

    /// Why trials could not be confined on this machine, if they could not.
    pub(crate) fn unconfined(&self) -> Option<String> {
        locked(&self.unconfined).clone()
    }

    /// Runs all, and gives what came of them in the order given. `done` is called when one has ended.
    pub(crate) fn run_all(
        &mut self,
        scheduler: &mut Jobs,
        jobs: &[&Job],
        done: impl FnMut(usize, &Run),
    ) -> Result<Vec<Run>> {
        let waiting = (0..jobs.len()).map(|index| Attempt { index, way: None }).collect();
        let mut queue = Attempts { waiting, runs: vec![None; jobs.len()], done };
        let work = |attempt: &Attempt, is: &Started| self.attempt(attempt, jobs[attempt.index], is);
        let result = scheduler.run(&mut queue, work);
        if let Some(unread) = self.server.as_ref().and_then(Server::is_over) {
            self.server = None;
            self.unread = self.unread.take().or(unread.map(|line| cannot_read(&line)));
        }
        result.map(|()| queue.runs.into_iter().flatten().collect())
    }

    /// What came of a trial, or the way in which it has to be made again.
    fn attempt(&self, attempt: &Attempt, job: &Job, is: &Started) -> Result<Came> {
        if let Some(signal) = session::ending() {
            let ended = Ended::before_it_began(signal);
            return Ok(Came::Run(Box::new(outcome::read(&job.folder, &ended, &job.settings))));
        }
        let way = attempt.way.unwrap_or_else(|| self.first_way(job));
        let confined = way.confined(&job.guard);
        let settings = Settings { confined, ..job.settings.clone() };
        let job = &Job { settings, ..job.clone() };
        clear(&job.folder)?;
        let ended = match self.server.as_ref().filter(|_| way.start == By::Fork) {
            Some(server) => self
                .request(attempt.index, job)
                .and_then(|request| server.run(&request, &job.settings, is)),
            None => Some(self.run_cold(job, is)?),
        };
        let Some(ended) = ended else {
            // The warm process is gone.
            return Ok(Came::Again(Way { start: By::Launcher, ..way }));
        };
        let run = outcome::read(&job.folder, &ended, &job.settings);
        if let Ok(why) = std::fs::read_to_string(job.folder.join(UNCONFINED_FILE)) {
            locked(&self.unconfined).get_or_insert(why.trim().to_owned());
            if job.guard.may_be_free {
                return Ok(Came::Again(Way { is_free: true, ..way }));
            }
            return Ok(Came::Run(Box::new(run)));
        }
        let has_failed = matches!(run.verdict, Verdict::ScriptFailed | Verdict::TimedOut);
        match way.next(job, &run).filter(|_| has_failed) {
            Some(next) => Ok(Came::Again(next)),
            None => {
                if !has_failed {
                    *locked(&self.best) = Some(way);
                }
                Ok(Came::Run(Box::new(run)))
            }
        }
    }

    /// As the last trial that went through was made.
    fn first_way(&self, job: &Job) -> Way {
        let can_fork = self.server.is_some() && self.request(0, job).is_some();
        let start = if can_fork { By::Fork } else { By::Launcher };
        let cannot = locked(&self.unconfined).is_some();
        let is_free = job.guard.may_be_free && cannot;
        let sees_all = locked(&self.best).is_some_and(|best| best.sees_all);
        Way { start, is_free, sees_all }
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
            folder: match &job.copied {
                Some(copied) => text(copied.here.as_os_str())?,
                None => text(std::env::current_dir().ok()?.as_os_str())?,
            },
            output: text(job.folder.join(OUTPUT).as_os_str())?,
        })
    }

    fn command(&self, job: &Job) -> Command {
        let command = self.launch.command(&job.words, &job.settings, &job.folder);
        let mut command = on_its_own(command);
        // A shortened training is not remembered: what it reads may be what it wrote itself.
        command.env(name::SOURCES, if job.settings.short.is_none() { "on" } else { "off" });
        command.envs(job.environment.iter().map(|(name, value)| (name, value)));
        if let Some(copied) = &job.copied {
            command.current_dir(&copied.here);
        }
        command
    }

    /// In a process of its own.
    fn run_cold(&self, job: &Job, is: &Started) -> Result<Ended> {
        let streams = Streams::to_file(&job.folder.join(OUTPUT))?;
        launch::follow(&self.command(job), &job.settings, streams, is)
    }
}

/// A trial to be made, by its index; without a way, in the best that is known.
struct Attempt {
    index: usize,
    way: Option<Way>,
}

/// What came of an attempt.
enum Came {
    Run(Box<Run>),
    Again(Way),
}

/// Trials in the order given, and those that are made again behind them.
struct Attempts<D> {
    waiting: VecDeque<Attempt>,
    runs: Vec<Option<Run>>,
    done: D,
}

impl<D: FnMut(usize, &Run)> Queue for Attempts<D> {
    type Job = Attempt;
    type Answer = Result<Came>;

    fn next(&mut self, _: &[&Attempt]) -> Option<Attempt> {
        self.waiting.pop_front()
    }

    fn ended(&mut self, attempt: &Attempt, came: Result<Came>) -> Result<()> {
        let index = attempt.index;
        match came? {
            Came::Run(run) => {
                (self.done)(index, &run);
                self.runs[index] = Some(*run);
            }
            Came::Again(way) => self.waiting.push_back(Attempt { index, way: Some(way) }),
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a first attempt left must not be taken for the second's; nor may what it wrote.
fn clear(folder: &Path) -> Result<()> {
    let scratch = folder.join(SCRATCH);
    if scratch.is_dir() {
        std::fs::remove_dir_all(scratch)?;
    }
    for entry in std::fs::read_dir(folder)?.flatten() {
        if entry.path().is_file() {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
