//! Trials: the same command again and again, with other words, variables and cards.
//!
//! A Python script is run by a warm process (`python/fathom/_warm/server.py`) that has imported its libraries
//! already and forks itself per trial; any other command starts cold. Two trials run at once. What a
//! trial gives is what `fathom run` would give: the same files, read by the same code.

mod server;
mod words;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Instant;

use anyhow::Result;
use contract::environment as name;
use study::{Run, Verdict};

use self::server::{Answer, Request, Server};
pub(crate) use self::words::take_apart;
use crate::launch::Launch;
use crate::outcome;
use crate::place;
use crate::session::{self, Ended, Streams};
use crate::settings::Settings;

/// Trials at a time.
const AT_ONCE: usize = 2;

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
            let folder = place::temporary();
            let start = launch.command(&words.start, settings, &folder);
            Server::start(start, &place::doorway().ok()?.join("_warm/server.py"), &words.rest)
        });
        Ok(Trials { launch, server, start: apart.map(|words| words.start), unread: None })
    }

    /// Whether trials are forked from a warm process, or were before a signal ended it.
    pub(crate) fn is_warm(&self) -> bool {
        self.server.is_some() || self.start.is_some() && session::ending().is_some()
    }

    /// Runs all, two at a time, in the order given. `done` is called when one has ended.
    pub(crate) fn run_all(&mut self, jobs: &[Job], mut done: impl FnMut()) -> Result<Vec<Run>> {
        let mut runs: Vec<Option<Run>> = vec![None; jobs.len()];
        let (warm, cold): (Vec<usize>, Vec<usize>) = (0..jobs.len()).partition(|&index| {
            self.server.is_some() && self.request(index, &jobs[index]).is_some()
        });
        let mut again = cold.clone();
        for (index, ended) in self.run_warm(&warm, jobs, &mut done) {
            let run = ended
                .map(|ended| outcome::read(&jobs[index].folder, &ended, &jobs[index].settings));
            match run {
                // What fails or hangs in a forked process might be the fork's doing.
                Some(run) if !matches!(run.verdict, Verdict::ScriptFailed | Verdict::TimedOut) => {
                    runs[index] = Some(run);
                }
                _ => again.push(index),
            }
        }
        for pair in again.chunks(AT_ONCE) {
            for (index, run) in self.run_cold(pair, jobs)? {
                if cold.contains(&index) {
                    done();
                }
                runs[index] = Some(run);
            }
        }
        Ok(runs.into_iter().flatten().collect())
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
        let mut command = self.launch.command(&job.words, &job.settings, &job.folder);
        command.env(name::SOURCES, "on");
        command.envs(job.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Each with how it ended; `None` where the warm process failed.
    fn run_warm(
        &mut self,
        which: &[usize],
        jobs: &[Job],
        done: &mut dyn FnMut(),
    ) -> Vec<(usize, Option<Ended>)> {
        let mut waiting: VecDeque<usize> = which.iter().copied().collect();
        let mut running: BTreeMap<usize, (Instant, Option<u32>)> = BTreeMap::new();
        let mut ended = Vec::new();
        while !waiting.is_empty() || !running.is_empty() {
            while running.len() < AT_ONCE
                && let Some(index) = waiting.pop_front()
            {
                let request = self.request(index, &jobs[index]);
                let sent = self
                    .server
                    .as_mut()
                    .zip(request)
                    .is_some_and(|(server, request)| server.send(&request));
                match sent {
                    true => drop(running.insert(index, (Instant::now(), None))),
                    false => ended.push((index, None)),
                }
            }
            let Some(server) = &self.server else { continue };
            let deadline = |(index, (began, _)): (&usize, &(Instant, Option<u32>))| {
                jobs[*index].settings.deadline(*began)
            };
            match server.next(running.iter().filter_map(deadline).min()) {
                Ok(Answer::Started { number, started }) => {
                    running.entry(number).and_modify(|entry| entry.1 = Some(started));
                }
                Ok(Answer::Ended { number, status }) => {
                    done();
                    let began = running.remove(&number).map_or_else(Instant::now, |entry| entry.0);
                    let deadline = jobs[number].settings.deadline(began);
                    let late = deadline.filter(|deadline| *deadline <= Instant::now());
                    let how = Ended::with(Answer::exit_status(status), began, late);
                    ended.push((number, Some(how)));
                }
                Ok(Answer::Ready { .. }) => {}
                Err(true) => end_the_late(&running, jobs),
                gone @ (Ok(Answer::Unread(_)) | Err(false)) => {
                    self.unread = self.unread.take().or_else(|| unread(gone.ok()?));
                    self.server = None;
                    ended.extend(broken_off(&running, &waiting));
                    return ended;
                }
            }
        }
        ended
    }

    /// Up to two at once, each in a process of its own.
    fn run_cold(&self, which: &[usize], jobs: &[Job]) -> Result<Vec<(usize, Run)>> {
        let mut children = Vec::new();
        for &index in which {
            let job = &jobs[index];
            clear(&job.folder)?;
            let output = File::create(job.folder.join(OUTPUT))?;
            let streams = Streams::to_files(output.try_clone()?, output)?;
            children.push((index, session::start(&self.command(job), streams)?));
        }
        let mut runs = Vec::new();
        for (index, running) in children {
            let settings = &jobs[index].settings;
            let ended = match running {
                Some(running) => {
                    let deadline = settings.deadline(running.begun());
                    running.wait(deadline)
                }
                None => Ended::before_it_began(session::ending().unwrap_or_default()),
            };
            runs.push((index, outcome::read(&jobs[index].folder, &ended, settings)));
        }
        Ok(runs)
    }
}

fn unread(answer: Answer) -> Option<String> {
    let Answer::Unread(line) = answer else { return None };
    let line: String = line.chars().take(SHOWN).collect();
    Some(format!("the warm process said what cannot be read (`{line}`): trials start Python anew"))
}

/// Trials without an answer. If a signal ended them, what they gave until then counts; else they are run again.
fn broken_off(
    running: &BTreeMap<usize, (Instant, Option<u32>)>,
    waiting: &VecDeque<usize>,
) -> Vec<(usize, Option<Ended>)> {
    let signal = session::ending();
    let status = signal.map(ExitStatus::from_raw);
    let ran = running.iter().map(|(index, (began, _))| {
        (*index, status.map(|status| Ended::with(status, *began, None)))
    });
    let not_run = waiting.iter().map(|index| (*index, signal.map(Ended::before_it_began)));
    ran.chain(not_run).collect()
}

fn end_the_late(running: &BTreeMap<usize, (Instant, Option<u32>)>, jobs: &[Job]) {
    for (index, (began, pid)) in running {
        let deadline = jobs[*index].settings.deadline(*began);
        if let (Some(pid), true) = (pid, deadline.is_some_and(|at| at <= Instant::now())) {
            session::kill(*pid);
        }
    }
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
