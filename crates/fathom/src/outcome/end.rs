//! How a run ended: broken off, by itself, or with an error.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use contract::files::Early;
use contract::files::process::End;
use study::{Run, Unfinished};

use super::files::{Seen, read_each};
use crate::here::from_here;
use crate::session::{self, Cut, Ended};

/// Exit code of a run that was broken off.
pub(crate) const UNFINISHED: i32 = 4;

/// The signal of `abort()`.
const ABORT: i32 = 6;

/// Whether the run was broken off, and by what.
pub(super) fn unfinished(ended: &Ended) -> Option<Unfinished> {
    let Cut { signal, seconds } = ended.cut?;
    Some(Unfinished { signal: signal.map(session::name), seconds })
}

/// What signals did to a run that they did not break off, and how it was broken off.
pub(super) fn notes_of_end(ended: &Ended, run: &Run) -> Option<String> {
    match (ended.cut, ended.passed_on) {
        (Some(_), _) if run.stopped => {
            Some("the script did not end after its last step, and was ended".to_owned())
        }
        (Some(_), _) if ended.by_force => {
            Some("the script did not end when it was asked to, and was killed".to_owned())
        }
        (None, Some(signal)) => {
            Some(format!("{} was passed on to the script", session::name(signal)))
        }
        _ => None,
    }
}

pub(super) fn failure(ended: &Ended, all: &[Seen], stopped: bool) -> Option<String> {
    // A launcher may report the end that we brought about as a failure of its own. And a script that
    // came to its end may still be aborted while the interpreter is taken down, when a thread of
    // autograd is not done yet: kernels that take no time make that race likely here.
    let came_to_its_end = all.first().and_then(Seen::end).is_some_and(|end| end.kind == "exit");
    let aborted = ended.status.signal() == Some(ABORT);
    if ended.status.success() || stopped || (aborted && came_to_its_end) {
        return None;
    }
    let how = match (ended.status.code(), ended.status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        _ => "ended".to_owned(),
    };
    Some(how)
}

/// `ValueError: no such file at train.py:12 (exit code 1)`; without an exception, whether it came to the card.
pub(super) fn named(how: &str, all: &[Seen], folder: &Path) -> String {
    let early: Vec<End> = read_each::<Early>(folder)
        .into_iter()
        .filter_map(|file| file.value.map(|early| early.end))
        .collect();
    let ends = all.iter().filter_map(Seen::end).chain(&early);
    let Some(end) = ends.into_iter().find(|end| end.kind == "exception") else {
        return match all.is_empty() {
            true => format!("{how}, before it used the GPU; what it printed says why"),
            false => how.to_owned(),
        };
    };
    let message = end.message.iter().flat_map(|text| text.lines()).next().unwrap_or_default();
    let name = end.exception.as_deref().unwrap_or_default();
    let said = if message.is_empty() { name.to_owned() } else { format!("{name}: {message}") };
    let place = end.file.clone().map(from_here).zip(end.line);
    let place = place.map_or(String::new(), |(file, line)| format!(" at {file}:{line}"));
    format!("{said}{place} ({how})")
}
