//! A command that runs: our end of its keeper.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::keeper::NAME;
use super::messages::{Message, Order, hand_over};
use super::signals;
use super::tree::{self, Process};

/// What `wait` says of exit code 1.
const FAILED: i32 = 1 << 8;

/// How often those that are left are looked for and killed.
const ROUNDS: u32 = 100;
const BEAT: Duration = Duration::from_millis(20);

/// Where a command reads from and writes to; `None` is where we do.
#[derive(Default)]
pub(crate) struct Streams {
    pub(crate) input: Option<OwnedFd>,
    pub(crate) output: Option<OwnedFd>,
    pub(crate) errors: Option<OwnedFd>,
}

impl Streams {
    /// Reads nothing, and writes to two new files.
    pub(crate) fn to_files(output: &Path, errors: &Path) -> io::Result<Streams> {
        Streams::without_input(File::create(output)?, File::create(errors)?)
    }

    /// Reads nothing, and writes all to one new file.
    pub(crate) fn to_file(output: &Path) -> io::Result<Streams> {
        let output = File::create(output)?;
        Streams::without_input(output.try_clone()?, output)
    }

    fn without_input(output: File, errors: File) -> io::Result<Streams> {
        let input = Some(File::open("/dev/null")?.into());
        Ok(Streams { input, output: Some(output.into()), errors: Some(errors.into()) })
    }
}

/// What ended a command before its own end, and after how many seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    /// `None` if its time was up.
    pub(crate) signal: Option<i32>,
    pub(crate) seconds: f64,
}

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) seconds: f64,
    pub(crate) cut: Option<Cut>,
    /// A signal that was passed on and that means what the script makes of it.
    pub(crate) passed_on: Option<i32>,
    /// Whether it was asked to end, did not, and was killed.
    pub(crate) by_force: bool,
}

impl Ended {
    /// Of a command that was not started any more.
    pub(crate) fn before_it_began(signal: i32) -> Ended {
        let cut = Some(Cut { signal: Some(signal), seconds: 0.0 });
        let status = ExitStatus::from_raw(signal);
        Ended { status, seconds: 0.0, cut, passed_on: None, by_force: false }
    }

    /// Of a command that came to its own end in so many seconds, at an earlier time.
    pub(crate) fn earlier(seconds: f64, has_failed: bool) -> Ended {
        let status = ExitStatus::from_raw(if has_failed { FAILED } else { 0 });
        Ended { status, seconds, cut: None, passed_on: None, by_force: false }
    }

    /// Of a command of which its status is known, and the deadline if it was late.
    pub(crate) fn with(status: ExitStatus, begun: Instant, late: Option<Instant>) -> Ended {
        let after = |time: Instant| time.saturating_duration_since(begun).as_secs_f64();
        let (end, other) = signals::since(begun);
        let signal = end.or(other.filter(|_| !status.success()));
        let cut = match late {
            Some(deadline) => Some(Cut { signal: None, seconds: after(deadline) }),
            None => signal.map(|(at, signal)| Cut { signal: Some(signal), seconds: after(at) }),
        };
        let passed_on = other.map(|(_, signal)| signal);
        Ended { status, seconds: after(Instant::now()), cut, passed_on, by_force: false }
    }
}

/// A command that was started and has not been waited for.
pub(crate) struct Running {
    keeper: Child,
    socket: BufReader<UnixStream>,
    begun: Instant,
    is_over: bool,
}

/// Starts a command; `None` if a signal has ended everything already.
pub(crate) fn start(command: &Command, streams: Streams) -> Result<Option<Running>> {
    signals::watch();
    let Some(mut running) = signals::enter(|folders| Running::start(command, streams, folders))?
    else {
        return Ok(None);
    };
    let name = command.get_program().to_string_lossy().into_owned();
    match running.next(None) {
        Some(Message::Started) => Ok(Some(running)),
        Some(Message::Failed(reason)) => Err(io::Error::from_raw_os_error(reason))
            .with_context(|| format!("`{name}` could not be started")),
        // A signal to everyone found the keeper before it was ready.
        _ if signals::ending().is_some() => Ok(None),
        _ => Err(anyhow::anyhow!("`{name}` could not be started: its keeper was killed")),
    }
}

impl Running {
    fn start(
        command: &Command,
        streams: Streams,
        folders: &[PathBuf],
    ) -> Result<(u32, UnixStream, Running)> {
        let begun = Instant::now();
        let (ours, theirs) = UnixStream::pair()?;
        let mut keeper = Command::new("/proc/self/exe");
        keeper.arg0(NAME).stdin(OwnedFd::from(theirs));
        // On a terminal the script takes part: it may read from it, and Ctrl-C is for it, too.
        if streams.input.is_some() || !are_in_foreground() {
            keeper.process_group(0);
        }
        keeper.stdout(streams.output.map_or_else(Stdio::inherit, Stdio::from));
        keeper.stderr(streams.errors.map_or_else(Stdio::inherit, Stdio::from));
        let child = keeper.spawn().context("the keeper of the command could not be started")?;
        drop(keeper);
        let pid = child.id();
        let mut running =
            Running { keeper: child, socket: BufReader::new(ours), begun, is_over: false };
        let socket = running.socket.get_mut();
        // A keeper that is killed here does not answer: that is noticed by who waits for it.
        let sent = match &streams.input {
            Some(input) => hand_over(socket, input.as_fd()),
            None => hand_over(socket, io::stdin().as_fd()),
        };
        let order = serde_json::to_string(&Order::new(command, folders))? + "\n";
        let _ = sent.and_then(|()| socket.write_all(order.as_bytes()));
        let for_signals = socket.try_clone()?;
        Ok((pid, for_signals, running))
    }

    /// The keeper's number: all of the command is below it.
    pub(crate) fn pid(&self) -> u32 {
        self.keeper.id()
    }

    /// When it was started.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// Waits for the end of the command and of all that it started; past the deadline it is ended.
    pub(crate) fn wait(mut self, deadline: Option<Instant>) -> Ended {
        let (mut deadline, mut late) = (deadline, None);
        loop {
            match self.next(deadline) {
                Some(Message::Ended { status, by_force }) => {
                    self.is_over = true;
                    let ended = Ended::with(ExitStatus::from_raw(status), self.begun, late);
                    return Ended { by_force, ..ended };
                }
                Some(_) => {}
                None if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                    late = deadline.take();
                    self.ask(Message::End(Signal::TERM.as_raw()));
                }
                None => {
                    self.is_over = true;
                    // Its socket closes before its children become ours.
                    let _ = self.keeper.kill();
                    let _ = self.keeper.wait();
                    end_adopted();
                    let killed = ExitStatus::from_raw(Signal::KILL.as_raw());
                    return Ended::with(killed, self.begun, late);
                }
            }
        }
    }

    fn ask(&mut self, message: Message) {
        // A keeper that is gone is noticed by who waits for it.
        let _ = self.socket.get_mut().write_all(message.line().as_bytes());
    }

    /// The next answer; `None` past the deadline, and if the keeper is gone.
    fn next(&mut self, deadline: Option<Instant>) -> Option<Message> {
        let mut line = Vec::new();
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let left = left.map(|left| left.max(Duration::from_millis(1)));
            self.socket.get_ref().set_read_timeout(left).ok()?;
            match self.socket.read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(_) => return Message::read(&String::from_utf8_lossy(&line)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Lines are written at once: what is late has not begun.
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Running {
    /// Who does not wait for a command does not want it any more.
    fn drop(&mut self) {
        if !self.is_over {
            self.ask(Message::End(Signal::TERM.as_raw()));
            while self.next(None).is_some_and(|message| !matches!(message, Message::Ended { .. })) {
            }
        }
        signals::forget(self.keeper.id());
        // Nothing is left to be done about a process that cannot be waited for.
        let _ = self.keeper.wait();
    }
}

/// Whether Ctrl-C reaches this process from its terminal.
fn are_in_foreground() -> bool {
    let terminal = File::open("/dev/tty").ok();
    let group = terminal.and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok());
    group == Some(rustix::process::getpgrp())
}

/// Commands whose keeper was killed are ours now; nothing else is below us but other keepers.
fn end_adopted() {
    let own = std::process::id();
    for _ in 0..ROUNDS {
        let below = tree::below(own);
        // Asked for afterwards: a keeper that another thread has just started is known by then.
        let keepers = signals::keepers();
        let is_adopted =
            |process: &Process| process.parent == own && !keepers.contains(&process.pid);
        let adopted: Vec<Process> = below.into_iter().filter(is_adopted).collect();
        if adopted.is_empty() {
            break;
        }
        adopted.iter().for_each(|process| tree::kill(process.pid));
        std::thread::sleep(BEAT);
        adopted.iter().for_each(|process| tree::reap(process.pid));
    }
}
