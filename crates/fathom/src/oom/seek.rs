//! Runs a command on the phantom and finds the allocations of a size.

use std::fs;
use std::path::Path;

use anyhow::Result;
use oom::Amount;
use recording::Recording;
use study::Sought;

use crate::error::Hinted;
use crate::here;
use crate::launch::Launch;
use crate::screen;
use crate::session::{self, Folder};
use crate::settings::{Settings, Verify};

/// Steps of the run: the optimizer makes its state in the first, so the second is typical.
const STEPS: u64 = 2;

/// Runs the command on a card like the text's; if nothing of that size is asked for there, on one
/// with unlimited memory, where it comes further.
pub(super) fn seek(
    asked: &[Amount],
    capacity: Option<Amount>,
    command: &[String],
) -> Result<Sought> {
    let launch = Launch::prepare(command)?;
    let (mut found, mut ended) = (None, None);
    for memory in capacity.map(|capacity| Some(capacity.middle())).into_iter().chain([None]) {
        let folder = Folder::new("seek")?;
        screen::say(&format!("fathom: {}", saying(memory, found.is_some())));
        ended = Some(launch.run(command, &settings(memory), folder.path())?);
        if session::ending().is_some() {
            break;
        }
        if let Some(recording) = largest(folder.path()) {
            let sought = search(recording, asked, memory)?;
            let is_found = sought.is_found();
            found = Some(sought);
            if is_found {
                break;
            }
        }
    }
    found.ok_or_else(|| {
        if let Some(signal) = session::ending() {
            return anyhow::anyhow!("interrupted by {}", session::name(signal));
        }
        let how = match ended.filter(|ended| !ended.status.success()) {
            Some(ended) => format!("it failed ({})", ended.status),
            None => "it did not use the GPU".to_owned(),
        };
        Hinted::error(
            format!("`{}` left no recording: {how}", command.join(" ")),
            "try it by itself: `fathom run -- COMMAND` shows what it does",
        )
    })
}

/// What is being done, for whoever waits.
fn saying(memory: Option<u64>, again: bool) -> String {
    let again = if again { "nothing of that size was asked for; " } else { "" };
    match memory {
        Some(bytes) => format!("{again}running on a phantom of {}", report::bytes::text(bytes)),
        None => format!("{again}running on a phantom with unlimited memory"),
    }
}

/// With the recorder, and whatever else the defaults are.
fn settings(memory: Option<u64>) -> Settings {
    Settings {
        card: memory.map(|bytes| gpus::unlimited().with_memory(bytes)),
        steps: STEPS,
        timeout: None,
        jobs: None,
        budget: None,
        values: true,
        assume: Vec::new(),
        cards: None,
        place: None,
        notes: Vec::new(),
        record: true,
        verify: Verify::Off,
        orders: false,
        confined: None,
        whole: false,
        short: None,
        keeps_source: false,
        baseline: None,
        margin: gate::DEFAULT_MARGIN,
        origins: Vec::new(),
    }
}

/// The recording with most events: of several processes, the one that trains.
fn largest(folder: &Path) -> Option<Recording> {
    let files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "fathom"));
    let recordings = files.filter_map(|path| {
        let bytes = fs::read(&path).map_err(|error| error.to_string());
        let read =
            bytes.and_then(|it| recording::file::read(&it).map_err(|error| error.to_string()));
        read.map_err(|why| screen::say(&format!("fathom: `{}`: {why}", path.display()))).ok()
    });
    recordings.max_by_key(|recording| recording.events.len())
}

fn search(recording: Recording, asked: &[Amount], memory: Option<u64>) -> Result<Sought> {
    let sought = study::seek(recording, asked, memory, &here::folder()).map_err(|why| {
        let hint = "`fathom run -- COMMAND` shows what it does";
        Hinted::error(format!("the run cannot be replayed: {why}"), hint)
    })?;
    Ok(Sought { steps: sought.steps.min(STEPS), ..sought })
}
