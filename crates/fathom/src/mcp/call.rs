//! One call of a tool: a command of this program in a process of its own, with its limits.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::inputs::Limits;
use crate::error::Hinted;
use crate::jobs;
use crate::session;

/// Before the words of a command that a server has started: it ends with the server.
pub(crate) const WORD: &str = "--of-a-server";

/// How often a command is looked at.
const BEAT: Duration = Duration::from_millis(100);

/// How often its memory is, and its progress is told: every so many beats.
const SELDOM: u32 = 5;

/// What a command gets between the request to end and its end.
const GRACE: Duration = Duration::from_secs(15);

/// The end of what the script printed, at most.
const SHOWN_BYTES: u64 = 2000;

/// What came of a command.
pub(super) struct Finished {
    /// `None` if it wrote none.
    pub(super) json: Option<Value>,
    /// Exit codes of this program; `None` if a signal ended it.
    pub(super) code: Option<i32>,
    /// The end of what was printed: the script's words, or an error of ours with its hint.
    pub(super) printed: String,
    /// The files that the command has written.
    pub(super) _folder: TempDir,
}

/// Called first in such a process: the kernel tells it when the server is gone.
pub(crate) fn follow_the_server() {
    // Without it, the command would end by itself, only later.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
}

/// A command, its folder and its limits.
pub(super) struct Call {
    words: Vec<String>,
    folder: PathBuf,
    limits: Limits,
    files: TempDir,
}

impl Call {
    /// Nothing runs yet.
    pub(super) fn new(verb: &str, folder: &str, limits: &Limits) -> Result<Call> {
        let path = Path::new(folder);
        if !path.is_absolute() {
            let message = format!("the folder `{folder}` is no absolute path");
            return Err(Hinted::error(
                message,
                "name the folder that the command is to run in: `/home/me/project`",
            ));
        }
        if !path.is_dir() {
            let message = format!("there is no folder `{folder}`");
            return Err(Hinted::error(
                message,
                "name one that exists on the machine of the server",
            ));
        }
        let files = tempfile::tempdir().context("no folder for the answer")?;
        let words = vec![WORD.to_owned(), verb.to_owned()];
        Ok(Call { words, folder: path.to_owned(), limits: limits.clone(), files })
    }

    /// Where the command writes a file of that name.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// More words.
    pub(super) fn add<T: Into<String>>(&mut self, words: impl IntoIterator<Item = T>) {
        self.words.extend(words.into_iter().map(Into::into));
    }

    /// A flag, if it has a value.
    pub(super) fn flag(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            // In one word: a value may begin with a dash.
            self.words.push(format!("{name}={}", value.to_string()));
        }
    }

    /// The answer goes there.
    pub(super) fn json(&mut self) {
        let path = self.file("answer.json").display().to_string();
        self.flag("--json", Some(path));
    }

    /// Runs it to its end, or to the end of what it may take.
    pub(super) async fn run(self, context: &RequestContext<RoleServer>) -> Result<Finished> {
        let printed = self.file("printed");
        let mut running = Running::start(&self, &printed)?;
        let begun = Instant::now();
        let most = self.limits.host_memory_bytes()?;
        let mut beats = 0u32;
        let code = loop {
            if let Some(status) =
                running.child.try_wait().context("the command cannot be waited for")?
            {
                break status.code();
            }
            if context.ct.is_cancelled() {
                running.end().await;
                return Err(anyhow::anyhow!(
                    "the call was cancelled, and its processes were ended"
                ));
            }
            if self.limits.seconds() < begun.elapsed().as_secs_f64() {
                running.end().await;
                let message = format!(
                    "the call took more than {} s, and its processes were ended",
                    self.limits.seconds()
                );
                return Err(Hinted::error(
                    message,
                    "raise `limit_seconds`, or ask for fewer trials or `steps`",
                ));
            }
            if beats.is_multiple_of(SELDOM) {
                let held = running.held();
                if most < held {
                    running.end().await;
                    let message = format!(
                        "the call held {} of the host's memory, more than its limit of {}, and its processes were ended",
                        anatomy::bytes::text(held),
                        anatomy::bytes::text(most)
                    );
                    return Err(Hinted::error(
                        message,
                        "raise `limit_host_memory`, or lower `jobs`",
                    ));
                }
                tell(context, begun, &printed).await;
            }
            beats = beats.wrapping_add(1);
            tokio::time::sleep(BEAT).await;
        };
        let json = fs::read_to_string(self.file("answer.json")).ok();
        let json = json.and_then(|text| serde_json::from_str(&text).ok());
        Ok(Finished { json, code, printed: last(&printed), _folder: self.files })
    }
}

/// What the client hears while it waits: the seconds, and the last line that was printed.
async fn tell(context: &RequestContext<RoleServer>, begun: Instant, printed: &Path) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let seconds = begun.elapsed().as_secs_f64();
    let text = last(printed);
    let line = text.lines().last().map_or(String::new(), |line| format!("; {line}"));
    let told = ProgressNotificationParam::new(token, seconds)
        .with_message(format!("{seconds:.0} s{line}"));
    // A client that does not listen needs no progress.
    let _ = context.peer.notify_progress(told).await;
}

/// The end of a file, as plain lines.
fn last(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(SHOWN_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(SHOWN_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(report::clean).filter(|line| !line.trim().is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// A command that runs; dropped, it is ended with all that it started.
struct Running {
    child: Child,
}

impl Running {
    fn start(call: &Call, printed: &Path) -> Result<Running> {
        let program = std::env::current_exe().context("cannot locate the `fathom` executable")?;
        let output = File::create(printed).context("what the command prints cannot be kept")?;
        let errors = output.try_clone().context("what the command prints cannot be kept")?;
        let child = Command::new(program)
            .args(&call.words)
            .current_dir(&call.folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .context("the command cannot be started")?;
        Ok(Running { child })
    }

    /// Bytes of the host's memory that it and all below it hold.
    fn held(&self) -> u64 {
        jobs::held(&[self.child.id()]).first().map_or(0, |held| held.now)
    }

    /// Asks it to end; kills it if it does not. It ends all below it, also when it is killed.
    async fn end(&mut self) {
        self.ask();
        let asked = Instant::now();
        while asked.elapsed() < GRACE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            tokio::time::sleep(BEAT).await;
        }
        self.kill();
    }

    fn ask(&self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // One that has ended needs no signal.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    fn kill(&mut self) {
        session::kill(self.child.id());
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.ask();
        let asked = Instant::now();
        while asked.elapsed() < GRACE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(BEAT);
        }
        self.kill();
    }
}
