//! Signals that reach this process: which are caught, what they mean, and to whom they are passed on.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::signal::{
    SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ,
};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use super::messages::Message;

/// Who sends one of these wants an end: a user, a time limit, a terminal that is closed.
pub(super) const ENDING: [i32; 5] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU];

/// What these mean is the script's own affair.
const OTHERS: [i32; 3] = [SIGUSR1, SIGUSR2, SIGALRM];

/// A second signal sooner than this is the first one again: `timeout` sends two.
const AGAIN: Duration = Duration::from_millis(500);

/// When a signal came, and which.
pub(super) type Received = (Instant, i32);

struct State {
    is_watching: bool,
    /// Whether the commands are trials, which no signal is meant for: each ends them all.
    are_trials: bool,
    received: Vec<Received>,
    /// Those who look after running commands.
    keepers: Vec<(u32, UnixStream)>,
    /// Folders that go with this process.
    folders: Vec<PathBuf>,
}

static STATE: Mutex<State> = Mutex::new(State {
    is_watching: false,
    are_trials: false,
    received: Vec::new(),
    keepers: Vec::new(),
    folders: Vec::new(),
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn is_end(&self, signal: i32) -> bool {
        self.are_trials || ENDING.contains(&signal)
    }

    fn ending(&self) -> Option<i32> {
        self.received.iter().map(|(_, signal)| *signal).find(|signal| self.is_end(*signal))
    }
}

/// Signals to catch: not those that whoever started us wants ignored, as `nohup` does.
pub(super) fn caught() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let is_ignored = |signal: i32| ignored >> (signal - 1) & 1 == 1;
    ENDING.into_iter().chain(OTHERS).filter(|signal| !is_ignored(*signal)).collect()
}

/// From here on signals are passed on, and end this process only when nothing is left to report.
pub(super) fn watch() {
    if std::mem::replace(&mut state().is_watching, true) {
        return;
    }
    super::tree::adopt_orphans();
    // A file that may not grow is an error to report, as any other that cannot be written.
    let Ok(mut signals) = Signals::new(caught().into_iter().chain([SIGXFSZ])) else { return };
    std::thread::spawn(move || {
        signals.forever().filter(|signal| *signal != SIGXFSZ).for_each(receive);
    });
}

/// From here on every signal ends the commands, and what they gave until then is the answer.
pub(crate) fn expect_trials() {
    state().are_trials = true;
}

fn receive(signal: i32) {
    let mut state = state();
    let now = Instant::now();
    let is_second = state.received.iter().any(|(at, of)| state.is_end(*of) && *at + AGAIN < now);
    state.received.push((now, signal));
    let message = if state.are_trials { Message::End(signal) } else { Message::Pass(signal) };
    for (_, keeper) in &mut state.keepers {
        // One that is gone has nobody left to look after.
        let _ = keeper.write_all(message.line().as_bytes());
    }
    if state.keepers.is_empty() && state.is_end(signal) && is_second {
        leave(&state, signal);
    }
}

/// Whoever asks twice does not want to wait for the report either.
fn leave(state: &State, signal: i32) {
    for folder in &state.folders {
        // What cannot be removed now is swept by the next run.
        let _ = fs::remove_dir_all(folder);
    }
    // It does not come back.
    let _ = low_level::emulate_default_handler(signal);
}

/// The signal that ended everything, if one did: nothing more is to be started.
pub(crate) fn ending() -> Option<i32> {
    state().ending()
}

/// Signals since a time: one that asked for an end, and any other.
pub(super) fn since(time: Instant) -> (Option<Received>, Option<Received>) {
    let state = state();
    let mut of = state.received.iter().copied().filter(|(at, _)| time <= *at);
    let end = of.clone().find(|(_, signal)| state.is_end(*signal));
    (end, of.find(|(_, signal)| !state.is_end(*signal)))
}

/// `SIGTERM`.
pub(crate) fn name(signal: i32) -> String {
    low_level::signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// Makes a keeper known, unless everything is to end; no signal is lost in between.
pub(super) fn enter<T>(
    start: impl FnOnce(&[PathBuf]) -> anyhow::Result<(u32, UnixStream, T)>,
) -> anyhow::Result<Option<T>> {
    let mut state = state();
    if state.ending().is_some() {
        return Ok(None);
    }
    let (pid, keeper, made) = start(&state.folders)?;
    state.keepers.push((pid, keeper));
    Ok(Some(made))
}

/// The keeper has nothing to look after any more.
pub(super) fn forget(pid: u32) {
    state().keepers.retain(|(of, _)| *of != pid);
}

/// Numbers of the keepers at work.
pub(super) fn keepers() -> Vec<u32> {
    state().keepers.iter().map(|(pid, _)| *pid).collect()
}

pub(super) fn add_folder(path: &Path) {
    state().folders.push(path.to_owned());
}

pub(super) fn remove_folder(path: &Path) {
    state().folders.retain(|of| of != path);
}
