//! Our end of the warm process: requests go in, answers come out, one line of JSON each.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeWriter, Write, pipe};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use contract::environment as name;
use serde::{Deserialize, Serialize};

use crate::session::{self, Running, Streams};

/// How long libraries may take to be imported.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long it may take to end when nothing more is wanted of it.
const GRACE: Duration = Duration::from_secs(5);

/// One trial, as the warm process wants it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Request {
    /// Given back with each answer.
    pub(crate) number: usize,
    /// The script, or `-m` and a module, and its arguments.
    pub(crate) words: Vec<String>,
    /// Variables to set, or to unset.
    pub(crate) environment: std::collections::BTreeMap<String, Option<String>>,
    /// The working folder.
    pub(crate) folder: String,
    /// A file that takes all output.
    pub(crate) output: String,
}

/// What the warm process said.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// Everything is imported; whether the card is still untouched.
    Ready { ready: bool },
    /// A trial began, in this process.
    Started { number: usize, started: u32 },
    /// A trial ended, with this status of `wait`.
    Ended { number: usize, status: i32 },
    /// A line that is none of these. Some trial's end may be lost with it: nothing more is heard.
    #[serde(skip)]
    Unread(String),
}

impl Answer {
    /// The status of a process as the system gives it.
    pub(crate) fn exit_status(status: i32) -> ExitStatus {
        ExitStatus::from_raw(status)
    }
}

/// The running process.
pub(crate) struct Server {
    running: Option<Running>,
    requests: Option<PipeWriter>,
    answers: Receiver<Answer>,
}

impl Server {
    /// Starts it and waits until it is ready; `None` if it cannot serve.
    pub(crate) fn start(mut command: Command, program: &Path, rest: &[String]) -> Option<Server> {
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
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            let mut is_ready = false;
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let answer = serde_json::from_str(&line).unwrap_or(Answer::Unread(line));
                let is_unread = matches!(answer, Answer::Unread(_));
                // Until it is ready, what Python's own start prints comes here too.
                if is_unread && !is_ready {
                    continue;
                }
                is_ready = true;
                if sender.send(answer).is_err() || is_unread {
                    break;
                }
            }
        });
        let server = Server { running: Some(running), requests: Some(requests), answers };
        match server.answers.recv_timeout(PATIENCE) {
            Ok(Answer::Ready { ready: true }) => Some(server),
            _ => None,
        }
    }

    /// Hands a trial over; `false` if the process is gone.
    pub(crate) fn send(&mut self, request: &Request) -> bool {
        let Ok(mut line) = serde_json::to_string(request) else { return false };
        line.push('\n');
        self.requests.as_mut().is_some_and(|pipe| pipe.write_all(line.as_bytes()).is_ok())
    }

    /// The next answer; `Err(true)` when the time is up, `Err(false)` when the process is gone.
    pub(crate) fn next(&self, deadline: Option<Instant>) -> Result<Answer, bool> {
        let Some(deadline) = deadline else { return self.answers.recv().map_err(|_| false) };
        let left = deadline.saturating_duration_since(Instant::now());
        self.answers.recv_timeout(left).map_err(|error| error == RecvTimeoutError::Timeout)
    }
}

impl Drop for Server {
    /// It ends when its input does, and its trials with it.
    fn drop(&mut self) {
        drop(self.requests.take());
        self.running.take().map(|running| running.wait(Some(Instant::now() + GRACE)));
    }
}
