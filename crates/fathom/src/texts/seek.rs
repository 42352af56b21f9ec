//! Runs a command on the phantom and finds the allocations of a size.

use std::fs;
use std::path::Path;

use allocator::{Settings as Rules, reproduce};
use anatomy::Alike;
use anyhow::Result;
use oom::Amount;
use recording::{Event, Recording};
use report::oom::{Refused, Sought};

use crate::error::Hinted;
use crate::here::from_here;
use crate::launch::Launch;
use crate::screen;
use crate::session::{self, Folder};
use crate::settings::Settings;

/// Steps of the run: the optimizer makes its state in the first, so the second is typical.
const STEPS: u64 = 2;

/// How many of the nearest sizes are looked at, and how many allocations of them are named.
const NEAREST: usize = 3;
const SHOWN: usize = 5;

/// Requests from this on get a segment of their own size.
const SMALLEST_OWN: u64 = 10 << 20;

/// Runs the command on a card like the text's; if nothing of that size is asked for there, on one
/// without end, where it comes further.
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
            let sought = search(&recording, asked, memory)?;
            let has_it = !sought.matches.is_empty() || sought.refused.is_some();
            found = Some(sought);
            if has_it {
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
        None => format!("{again}running on a phantom without end"),
    }
}

/// With the recorder, and whatever else the defaults are.
fn settings(memory: Option<u64>) -> Settings {
    Settings {
        card: memory.map(|bytes| gpus::unlimited().with_memory(bytes)),
        steps: STEPS,
        timeout: None,
        budget: None,
        values: true,
        assume: Vec::new(),
        cards: None,
        place: None,
        jobs: None,
        notes: Vec::new(),
        record: true,
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

fn search(recording: &Recording, asked: &[Amount], memory: Option<u64>) -> Result<Sought> {
    let hint = "`fathom run -- COMMAND` shows what it does";
    let rules = Rules::of(&recording.about)
        .map_err(|error| Hinted::error(format!("the run cannot be replayed: {error}"), hint))?;
    let timeline = reproduce(recording, &rules).timeline;
    let is_asked = |bytes: u64| asked.iter().any(|range| range.contains(bytes));
    let named = |is_wanted: &dyn Fn(u64) -> bool| -> Vec<Alike> {
        let mut all = anatomy::allocations(recording, &timeline, is_wanted);
        for tensor in all.iter_mut().map(|alike| &mut alike.first) {
            tensor.origin.file = from_here(std::mem::take(&mut tensor.origin.file));
        }
        all
    };
    let matches = named(&is_asked);
    let mut near = Vec::new();
    if matches.is_empty() {
        let sizes = nearest(recording, asked);
        near = named(&|bytes| sizes.contains(&bytes));
        near.truncate(SHOWN);
    }
    let refused = refused(recording, &timeline).filter(|refused| is_asked(refused.bytes));
    Ok(Sought {
        memory_bytes: memory,
        steps: steps(recording),
        by_segment: asked.iter().any(|range| range.high < SMALLEST_OWN),
        nearest: near,
        matches,
        refused,
        torch: recording.about.torch.clone(),
    })
}

/// The last request that found no room, with who asked.
fn refused(recording: &Recording, timeline: &allocator::Timeline) -> Option<Refused> {
    let has_one = recording.events.iter().any(|event| matches!(event, Event::OutOfMemory { .. }));
    let refusal =
        has_one.then(|| anatomy::dissect(recording, timeline)).and_then(|all| all.out_of_memory)?;
    let origin = anatomy::Origin { file: from_here(refusal.origin.file), ..refusal.origin };
    Some(Refused { bytes: refusal.tried_bytes, origin })
}

/// The sizes nearest to what was asked for, as factors.
fn nearest(recording: &Recording, asked: &[Amount]) -> Vec<u64> {
    let wanted = asked.iter().map(|range| range.middle()).max().unwrap_or(0).max(1) as f64;
    let mut sizes: Vec<u64> = recording
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Alloc { size, .. } if *size != 0 => Some(*size),
            _ => None,
        })
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let distance = |size: u64| (size as f64 / wanted).ln().abs();
    sizes.sort_by(|a, b| distance(*a).total_cmp(&distance(*b)));
    sizes.truncate(NEAREST);
    sizes
}

fn steps(recording: &Recording) -> u64 {
    let steps = recording.events.iter().filter_map(|event| match event {
        Event::Mark(recording::Mark::Phase { step, .. }) => Some(u64::from(*step)),
        _ => None,
    });
    steps.max().unwrap_or(0).min(STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_sizes_are_near_as_factors() {
        let events = "alloc 0x1000 512\nalloc 0x2000 1000\nalloc 0x3000 9000\nalloc 0x4000 1000\n";
        let recording =
            Recording { events: recording::text::parse(events).unwrap(), ..Recording::default() };
        assert_eq!(nearest(&recording, &[Amount::exactly(1500)]), [1000, 512, 9000]);
    }
}
