//! Processes that share a card, side by side.

use serde::Serialize;

use crate::bytes;
use study::{Process, Run};

/// Rows that are shown unless everything is asked for.
const SHOWN: usize = 6;

/// The rows of a table, the first with the sum; nothing if one process had the card for itself.
pub(crate) fn rows(run: &Run, is_all: bool) -> Vec<String> {
    let Some(peak) = run.peak.as_ref().filter(|_| 1 < run.processes.len()) else {
        return Vec::new();
    };
    let (at_once, other_times): (Vec<&Process>, Vec<&Process>) =
        run.processes.iter().partition(|process| process.bytes != 0);
    let count = match at_once.len() {
        1 => "1 process".to_owned(),
        count => format!("{count} processes"),
    };
    let mut text =
        vec![format!("{} held by {count} at the card's peak", bytes::text(peak.device_bytes))];
    let shown = if is_all { usize::MAX } else { SHOWN };
    text.extend(at_once.iter().take(shown).map(|process| row(process, process.bytes, run)));
    text.extend((shown < at_once.len()).then(|| format!("… {} more", at_once.len() - shown)));
    match (other_times.iter().map(|process| process.peak_bytes).max(), is_all) {
        (Some(_), true) => {
            text.push("at other times, each by itself".to_owned());
            text.extend(other_times.iter().map(|process| row(process, process.peak_bytes, run)));
        }
        (Some(most), false) => {
            let (count, most) = (other_times.len(), bytes::text(most));
            text.push(format!("at other times: {count} more, up to {most} each"));
        }
        (None, _) => {}
    }
    text
}

fn row(process: &Process, bytes: u64, run: &Run) -> String {
    let is_known = run.processes.iter().any(|other| other.pid == process.parent);
    let parent = match is_known {
        true => format!(", child of {}", process.parent),
        false => String::new(),
    };
    let start = format!("{:>10}  process {}{parent}  ", bytes::text(bytes), process.pid);
    format!("{start}{}", name(&process.command))
}

/// The command as people would write it: the program without its folder.
fn name(command: &str) -> String {
    if command.contains("multiprocessing.spawn") || command.contains("multiprocessing.forkserver") {
        return "started by Python's multiprocessing".to_owned();
    }
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    let program = program.rsplit('/').next().unwrap_or(program);
    format!("{program} {rest}").trim_end().to_owned()
}

#[derive(Serialize)]
pub(crate) struct JsonProcess<'a> {
    pid: u32,
    parent_pid: u32,
    command: &'a str,
    /// When all processes together held most.
    bytes: u64,
    context_bytes: u64,
    /// The most that it held itself, at whatever time.
    peak_bytes: u64,
}

impl<'a> JsonProcess<'a> {
    pub(crate) fn of(process: &'a Process) -> JsonProcess<'a> {
        JsonProcess {
            pid: process.pid,
            parent_pid: process.parent,
            command: &process.command,
            bytes: process.bytes,
            context_bytes: process.context_bytes,
            peak_bytes: process.peak_bytes,
        }
    }
}
