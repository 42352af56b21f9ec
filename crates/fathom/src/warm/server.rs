//! Our end of the warm process: requests go in, answers come out, one line of JSON each.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use contract::environment as name;
use serde::{Deserialize, Serialize};

use crate::jobs::Started;
use crate::session::{self, Ended, Running, Streams};
use crate::settings::Settings;

/// How long libraries may take to be imported.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long it may take to end when nothing more is wanted of it.
const GRACE: Duration = Duration::from_secs(5);

/// One trial, as the warm process wants it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Request {
    /// Given back with each answer.
    pub(super) number: usize,
    /// The script, or `-m` and a module, and its arguments.
    pub(super) words: Vec<String>,
    /// Variables to set, or to unset.
    pub(super) environment: BTreeMap<String, Option<String>>,
    /// The working folder.
    pub(super) folder: String,
    /// A file that takes all output.
    pub(super) output: String,
}

/// What the warm process said.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum WarmReply {
    /// Everything is imported; whether the card is still untouched.
    Ready { ready: bool },
    /// A trial began, in this process.
    Started { number: usize, started: u32 },
    /// A trial ended, with this status of `wait`.
    Ended { number: usize, status: i32 },
}

/// News of one trial.
enum News {
    Started(u32),
    Ended(i32),
}

/// Who waits for answers.
#[derive(Default)]
struct Heard {
    /// By the number of the trial.
    listeners: BTreeMap<usize, Sender<News>>,
    /// Whether nothing more will be heard.
    is_over: bool,
    /// A line that is no answer. Some trial's end may be lost with it: nothing more is heard.
    unread: Option<String>,
}

/// The running process.
pub(super) struct Server {
    running: Mutex<Option<Running>>,
    requests: Mutex<Option<PipeWriter>>,
    heard: Arc<Mutex<Heard>>,
}

impl Server {
    /// Starts it and waits until it is ready; `None` if it cannot serve.
    pub(super) fn start(mut command: Command, program: &Path, rest: &[String]) -> Option<Server> {
        command.arg(program).args(rest);
        // The doorway and the folder are the trial's own.
        command.env_remove(name::DOORWAY).env_remove(name::RUN);
        let ((input, requests), (output, answers)) = (pipe().ok()?, pipe().ok()?);
        let nowhere = File::options().write(true).open("/dev/null").ok()?;
        let streams = Streams {
            input: Some(input.into()),
            output: Some(answers.into()),
            errors: Some(nowhere.into()),
        };
        let running = session::start(&command, streams).ok()??;
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (sender, ready) = channel();
        let for_listener = heard.clone();
        std::thread::spawn(move || listen(output, &for_listener, &sender));
        let (running, requests) = (Mutex::new(Some(running)), Mutex::new(Some(requests)));
        let server = Server { running, requests, heard };
        ready.recv_timeout(PATIENCE).is_ok_and(|is_ready| is_ready).then_some(server)
    }

    /// Runs one trial to its end, or to its timeout; `None` if the process is gone.
    pub(super) fn run(
        &self,
        request: &Request,
        settings: &Settings,
        is: &Started,
    ) -> Option<Ended> {
        let (sender, news) = channel();
        locked(&self.heard).listeners.insert(request.number, sender);
        let began = Instant::now();
        let ended = match self.send(request) {
            true => follow(&news, began, settings.deadline(began), is),
            false => None,
        };
        locked(&self.heard).listeners.remove(&request.number);
        if ended.is_none() {
            self.end();
        }
        ended
    }

    /// Hands a trial over; `false` if the process is gone.
    fn send(&self, request: &Request) -> bool {
        let Ok(mut line) = serde_json::to_string(request) else { return false };
        line.push('\n');
        let mut requests = locked(&self.requests);
        let is_sent = requests.as_mut().is_some_and(|pipe| pipe.write_all(line.as_bytes()).is_ok());
        is_sent && !locked(&self.heard).is_over
    }

    /// It ends when its input does, and its trials with it.
    fn end(&self) {
        drop(locked(&self.requests).take());
        // Whoever comes second waits as well.
        let mut running = locked(&self.running);
        running.take().map(|running| running.wait(Some(Instant::now() + GRACE)));
    }

    /// Whether it has ended, and what it said that cannot be read.
    pub(super) fn is_over(&self) -> Option<Option<String>> {
        let mut heard = locked(&self.heard);
        heard.is_over.then(|| heard.unread.take())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands answers to those who wait for them, until there are none.
fn listen(output: PipeReader, heard: &Mutex<Heard>, ready: &Sender<bool>) {
    let mut is_ready = false;
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let (number, news) = match serde_json::from_str(&line) {
            Ok(WarmReply::Ready { ready: it }) => {
                is_ready = true;
                // Nobody waits for it any more if it took too long.
                let _ = ready.send(it);
                continue;
            }
            Ok(WarmReply::Started { number, started }) => (number, News::Started(started)),
            Ok(WarmReply::Ended { number, status }) => (number, News::Ended(status)),
            // Until it is ready, what Python's own start prints comes here too.
            Err(_) if !is_ready => continue,
            Err(_) => {
                locked(heard).unread = Some(line);
                break;
            }
        };
        if let Some(listener) = locked(heard).listeners.get(&number) {
            // One that has given up has said so.
            let _ = listener.send(news);
        }
    }
    let mut heard = locked(heard);
    heard.is_over = true;
    heard.listeners.clear();
}

/// From a trial's start to its end; past the deadline it is ended. `None` if nothing more is heard of it.
fn follow(
    news: &Receiver<News>,
    began: Instant,
    deadline: Option<Instant>,
    is: &Started,
) -> Option<Ended> {
    let (mut pid, mut late) = (None, None);
    loop {
        let left = deadline.filter(|_| late.is_none());
        let left = left.map(|at| at.saturating_duration_since(Instant::now()));
        let heard = match left {
            Some(left) => news.recv_timeout(left),
            None => news.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match heard {
            Ok(News::Started(number)) => {
                is.is(number);
                pid = Some(number);
            }
            Ok(News::Ended(status)) => {
                let late = late.or(deadline.filter(|at| *at <= Instant::now()));
                return Some(Ended::with(ExitStatus::from_raw(status), began, late));
            }
            Err(RecvTimeoutError::Timeout) => late = deadline,
            Err(RecvTimeoutError::Disconnected) => {
                // What a trial gave until a signal ended it counts.
                let status = session::ending().map(ExitStatus::from_raw);
                return status.map(|status| Ended::with(status, began, None));
            }
        }
        if let (Some(pid), Some(_)) = (pid, late) {
            session::kill(pid);
        }
    }
}
