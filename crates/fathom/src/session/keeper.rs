//! The keeper: a small process between Fathom and a command, who sees to it that nothing of the command
//! outlives the run, whatever happens to Fathom.
//!
//! It starts the command and adopts every process that loses its parent below it, so all of them can be
//! found. It ends them when it is asked to, when the command itself has ended, and when its socket says that
//! Fathom is gone, which is so even after SIGKILL. Signals are passed on only if they did not reach the
//! keeper by themselves: a terminal, and Slurm, send them to everyone, and then the command has them already.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions, wait};
use signal_hook::consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT};
use signal_hook::iterator::Signals;

use super::folder;
use super::messages::{Message, Order, take_over};
use super::signals::{self, ENDING};
use super::tree::{self, Process};

/// The name under which this program is a keeper.
pub(crate) const NAME: &str = "fathom-keeper";

/// How long a command gets between the request to end and its end.
const GRACE: Duration = Duration::from_secs(5);

/// How long others get that are left when the command has ended, before and after they are asked to end.
const PATIENCE: Duration = Duration::from_millis(500);
const REST: Duration = Duration::from_secs(2);

/// A signal that was sent to everyone reaches all of them within this time.
const TOGETHER: Duration = Duration::from_millis(60);

/// How often those that are left are looked for and killed, and for how long.
const BEAT: Duration = Duration::from_millis(20);
const VAIN: Duration = Duration::from_secs(10);

/// Signals that a terminal sends to a whole group: a shell, for one, leaves them to its children.
const FOR_GROUPS: [i32; 3] = [SIGINT, SIGQUIT, SIGHUP];

enum Event {
    Asked(Message),
    /// Fathom is gone.
    Alone,
    Signal(i32),
}

struct Keeper {
    fathom: UnixStream,
    events: Receiver<Event>,
    command: Process,
    /// How the command ended, as `wait` says it.
    status: Option<i32>,
    /// Signals to pass on unless they come by themselves.
    waiting: Vec<(Instant, i32)>,
    /// Signals that came by themselves, and those that were passed on.
    seen: Vec<(Instant, i32)>,
    /// When whoever is left is asked to end, and when all are killed.
    ask_at: Option<Instant>,
    kill_at: Option<Instant>,
    killing_since: Option<Instant>,
    by_force: bool,
    is_alone: bool,
}

/// The whole life of a keeper. Nobody reads errors of it: to Fathom, its end says enough.
pub(crate) fn keep() -> io::Result<()> {
    tree::adopt_orphans();
    let (sender, events) = channel();
    // Before the command starts: what is caught here is not caught there.
    let mut signals = Signals::new(signals::caught().into_iter().chain([SIGCHLD]))?;
    let mut fathom = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let input = take_over(&fathom)?;
    let mut lines = BufReader::new(fathom.try_clone()?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line)?;
    let folders: Vec<PathBuf> = order.folders().map(PathBuf::from).collect();
    let locks: Vec<File> = folders.iter().filter_map(|path| folder::share(path).ok()).collect();
    let mut command = order.command();
    #[allow(clippy::zombie_processes, reason = "`reap` waits for it, and for all that it adopts")]
    let child = match command.stdin(input).spawn() {
        Ok(child) => child,
        Err(error) => {
            let reason = Message::Failed(error.raw_os_error().unwrap_or(0));
            return fathom.write_all(reason.line().as_bytes());
        }
    };
    drop(command);
    let command = Process::read(child.id()).ok_or(io::ErrorKind::NotFound)?;
    let _ = fathom.write_all(Message::Started.line().as_bytes());
    stop_talking()?;
    let asked = sender.clone();
    std::thread::spawn(move || listen(lines, &asked));
    std::thread::spawn(move || {
        signals.forever().all(|signal| sender.send(Event::Signal(signal)).is_ok())
    });
    let is_alone = Keeper::new(fathom, events, command).run();
    drop(locks);
    folders.iter().filter(|_| is_alone).for_each(|path| folder::remove_if_left(path));
    Ok(())
}

/// The command's output is its own: whoever reads it need not wait for the keeper, too.
fn stop_talking() -> io::Result<()> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    Ok(rustix::stdio::dup2_stderr(&nowhere)?)
}

fn listen(lines: BufReader<UnixStream>, to: &Sender<Event>) {
    for line in lines.lines().map_while(Result::ok) {
        if let Some(message) = Message::read(&line) {
            // Without a receiver the keeper is done.
            let _ = to.send(Event::Asked(message));
        }
    }
    let _ = to.send(Event::Alone);
}

impl Keeper {
    fn new(fathom: UnixStream, events: Receiver<Event>, command: Process) -> Keeper {
        Keeper {
            fathom,
            events,
            command,
            status: None,
            waiting: Vec::new(),
            seen: Vec::new(),
            ask_at: None,
            kill_at: None,
            killing_since: None,
            by_force: false,
            is_alone: false,
        }
    }

    /// Until nothing is left; whether Fathom was gone by then.
    fn run(mut self) -> bool {
        while self.reap() && self.killing_since.is_none_or(|since| since.elapsed() < VAIN) {
            self.pass_on();
            self.end_who_is_left();
            match self.events.recv_timeout(self.pause()) {
                Ok(Event::Signal(SIGCHLD)) | Err(_) => {}
                Ok(Event::Signal(signal)) => self.seen.push((Instant::now(), signal)),
                Ok(Event::Asked(Message::Pass(signal))) => {
                    self.waiting.push((Instant::now(), signal));
                }
                Ok(Event::Asked(Message::End(signal))) => self.end(signal, GRACE),
                Ok(Event::Asked(_)) => {}
                Ok(Event::Alone) => {
                    self.is_alone = true;
                    self.end(signal_hook::consts::SIGTERM, REST);
                }
            }
        }
        let (status, by_force) = (self.status.unwrap_or(0), self.by_force);
        // Who is gone needs no answer.
        let _ = self.fathom.write_all(Message::Ended { status, by_force }.line().as_bytes());
        self.is_alone
    }

    /// Takes note of who ended; `false` if nobody is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(None) => return true,
                Ok(Some((pid, status))) if pid.as_raw_pid() == self.command.pid as i32 => {
                    self.status = Some(status.as_raw());
                    let ask_at = Instant::now() + PATIENCE;
                    self.ask_at = Some(ask_at);
                    self.kill_by(ask_at + REST);
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// How long there is nothing to do unless something happens.
    fn pause(&self) -> Duration {
        let passing = self.waiting.first().map(|(at, _)| *at + TOGETHER);
        let next = [passing, self.ask_at, self.kill_at].into_iter().flatten().min();
        next.map_or(Duration::from_secs(3600), |next| {
            next.saturating_duration_since(Instant::now())
        })
    }

    fn kill_by(&mut self, time: Instant) {
        self.kill_at = Some(self.kill_at.map_or(time, |earlier| earlier.min(time)));
    }

    fn all(&self) -> Vec<Process> {
        tree::below(std::process::id())
    }

    fn end(&mut self, signal: i32, grace: Duration) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            self.all().iter().for_each(|process| process.send(signal));
        }
        self.kill_by(Instant::now() + grace);
    }

    /// Signals whose time has come, unless the command has them already.
    fn pass_on(&mut self) {
        let is_due = |(at, _): &(Instant, i32)| TOGETHER <= at.elapsed();
        let due: Vec<(Instant, i32)> = self.waiting.extract_if(.., |row| is_due(row)).collect();
        for (at, signal) in due {
            let is_same = |(seen, of): &(Instant, i32)| {
                *of == signal && at.checked_sub(TOGETHER).is_none_or(|from| from <= *seen)
            };
            if !self.seen.iter().any(is_same) {
                self.seen.push((Instant::now(), signal));
                self.send(signal);
            }
            // Ctrl-C may be a question to the script; whoever sends another of these will not wait long.
            if ENDING.contains(&signal) && signal != SIGINT {
                self.kill_by(Instant::now() + GRACE);
            }
        }
    }

    fn send(&self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number).filter(|_| self.status.is_none()) else {
            return;
        };
        if !FOR_GROUPS.contains(&number) {
            return self.command.send(signal);
        }
        let in_group = |process: &&Process| process.group == self.command.group;
        self.all().iter().filter(in_group).for_each(|process| process.send(signal));
    }

    fn end_who_is_left(&mut self) {
        let now = Instant::now();
        if self.ask_at.is_some_and(|at| at <= now) {
            self.ask_at = None;
            self.all().iter().for_each(|process| process.send(Signal::TERM));
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.by_force |= self.status.is_none();
            self.killing_since.get_or_insert(now);
            self.kill_at = Some(now + BEAT);
            self.all().iter().for_each(|process| process.send(Signal::KILL));
        }
    }
}
