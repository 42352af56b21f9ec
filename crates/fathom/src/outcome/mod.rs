//! Reads what a run left in its folder and gives the verdict.

mod files;
mod held;
mod notes;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use report::{FitsOn, OutOfMemory, Peak, PeakBytes, Run, Software, Verdict, Workspaces};

use self::files::{Moment, Process, Seen, read_all};
use self::notes::notes;
use crate::dissect::from_here;
use crate::launch::Ended;
use crate::settings::Settings;

/// The signal of `abort()`.
const ABORT: i32 = 6;

/// Puts a run together from what its processes left.
pub(crate) fn read(folder: &Path, ended: &Ended, settings: &Settings) -> Run {
    let all = read_all(folder);
    let main = all.first();
    let process = main.and_then(|seen| seen.process.as_ref());
    let stopped = all.iter().any(|seen| seen.end().is_some_and(|end| end.kind == "stopped"));
    let out_of_memory = all.iter().find_map(refusal_that_ended);
    let peak = main.filter(|seen| 0 < seen.device().1).map(peak_of);
    let failure = failure(ended, &all, stopped);
    let over_budget = match (settings.budget, &peak) {
        (Some(budget), Some(peak)) => budget < peak.device_bytes,
        _ => false,
    };
    let (verdict, exit_code) = match () {
        () if out_of_memory.is_some() => (Verdict::DoesNotFit, 1),
        () if failure.is_some() => (Verdict::ScriptFailed, 3),
        () if over_budget => (Verdict::DoesNotFit, 1),
        () => (Verdict::Fits, 0),
    };
    let mut run = Run {
        verdict,
        exit_code,
        card: settings.card.as_ref().map(card_of),
        software: process.map(software_of).unwrap_or_default(),
        workspaces: all
            .iter()
            .map(Seen::workspaces)
            .max_by_key(|source| *source as u8)
            .unwrap_or(Workspaces::None),
        steps: process.map_or(0, |process| process.steps),
        stopped,
        wall_seconds: ended.seconds,
        fits_on: Vec::new(),
        peak,
        anatomy: None,
        findings: Vec::new(),
        answers: Vec::new(),
        floor_bytes: None,
        budget_bytes: settings.budget,
        against: None,
        out_of_memory,
        failure,
        ranks: None,
        deferred: None,
        notes: Vec::new(),
    };
    if settings.card.is_none() && verdict == Verdict::Fits {
        run.fits_on = smallest_cards(&run);
    }
    run.notes = notes(&all, settings, &run);
    main.into_iter().for_each(|main| held::add(&mut run, folder, main));
    run
}

/// Recordings of a run's folder; that of the process that used its card most comes first.
pub(crate) fn recordings(folder: &Path) -> Vec<PathBuf> {
    let of_main = read_all(folder).first().map(|main| folder.join(held::file_of(main)));
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.retain(|path| path.extension().is_some_and(|kind| kind == "fathom"));
    all.sort_by_key(|path| (Some(path) != of_main.as_ref(), path.clone()));
    all
}

/// An out-of-memory error that was not caught, or after which no step was completed.
fn refusal_that_ended(seen: &Seen) -> Option<OutOfMemory> {
    let process = seen.process.as_ref()?;
    let uncaught = process.end.as_ref().filter(|end| end.kind == "out_of_memory");
    let refusal = process.refusals.last();
    if let (None, Some(end)) = (refusal, uncaught) {
        // Allocators without observers: the card itself knows what it refused last.
        return Some(OutOfMemory {
            tried_bytes: seen.page.devices[seen.device().0].refused_bytes,
            file: end.file.clone().map(from_here),
            line: end.line,
            message: end.message.clone(),
            ..OutOfMemory::default()
        });
    }
    if let Some(refusal) = refusal_of_nccl(seen) {
        return Some(refusal);
    }
    // Caught: the run went on if steps followed, or if it has no steps to show and ended by itself.
    let went_on = match process.steps_of_all {
        0 => process.end.as_ref().is_some_and(|end| end.kind == "exit"),
        steps => refusal.is_some_and(|refusal| refusal.steps_done < steps),
    };
    let refusal = refusal.filter(|_| uncaught.is_some() || !went_on)?;
    Some(OutOfMemory {
        tried_bytes: refusal.tried_bytes,
        free_bytes: Some(refusal.free_bytes),
        phase: refusal.phase.clone(),
        step: refusal.step,
        file: uncaught
            .and_then(|end| end.file.clone())
            .or_else(|| refusal.file.clone())
            .map(from_here),
        line: uncaught.and_then(|end| end.line).or(refusal.line),
        message: uncaught.map(|end| end.message.clone()).unwrap_or_default(),
        shortage: None,
    })
}

/// A communicator for which the card had no room, if the script ended with an exception.
fn refusal_of_nccl(seen: &Seen) -> Option<OutOfMemory> {
    let end = seen.end().filter(|end| end.kind == "exception")?;
    let mut refused = seen.page.devices.iter().map(|device| device.nccl_refused);
    let tried_bytes = refused.find(|bytes| *bytes != 0)?;
    Some(OutOfMemory {
        tried_bytes,
        file: end.file.clone().map(from_here),
        line: end.line,
        message: "NCCL's buffers for a communicator (modelled) do not fit".to_owned(),
        ..OutOfMemory::default()
    })
}

fn failure(ended: &Ended, all: &[Seen], stopped: bool) -> Option<String> {
    if ended.timed_out {
        return Some(format!("ended after {:.0} s: the timeout", ended.seconds));
    }
    if ended.interrupted {
        return Some("interrupted".to_owned());
    }
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
    let exception = all.iter().filter_map(Seen::end).find(|end| end.kind == "exception");
    Some(match exception {
        Some(end) => {
            let message = end.message.lines().next().unwrap_or_default();
            format!("{}: {message} ({how})", end.exception)
        }
        None => how,
    })
}

fn peak_of(seen: &Seen) -> Peak {
    let (index, device_bytes) = seen.device();
    let device = seen
        .process
        .as_ref()
        .and_then(|process| process.devices.iter().find(|d| d.device == index));
    let moment = |moment: &Moment| PeakBytes {
        bytes: moment.bytes,
        phase: moment.phase.clone(),
        step: moment.step,
    };
    match device {
        Some(device) => Peak {
            requested: moment(&device.requested),
            allocated: moment(&device.allocated),
            reserved: moment(&device.reserved),
            device_bytes,
            nccl_bytes: seen.page.devices[index].nccl,
        },
        // Without the doorway only the card's own count is known.
        None => {
            let reserved =
                PeakBytes { bytes: seen.page.devices[index].peak, ..PeakBytes::default() };
            Peak { reserved, device_bytes, ..Peak::default() }
        }
    }
}

fn card_of(card: &gpus::Card) -> report::Card {
    report::Card {
        name: card.name.to_owned(),
        title: match card.memory_known {
            gpus::Known::Given => "a card".to_owned(),
            _ => card.title.to_owned(),
        },
        memory_bytes: card.memory_bytes,
        context_bytes: card.context_bytes,
        // For a card given by its memory alone the context is another card's.
        context_assumed: card.context_known.is_assumed() || card.memory_known == gpus::Known::Given,
        compute_capability: card.compute_capability,
    }
}

/// 92600 as `9.26.0`; empty if it could not be asked.
fn cudnn_text(version: u64) -> String {
    if version == 0 {
        return String::new();
    }
    format!("{}.{}.{}", version / 10_000, version % 10_000 / 100, version % 100)
}

fn software_of(process: &Process) -> Software {
    Software {
        torch: process.torch.clone(),
        cuda: process.cuda.clone(),
        cudnn: cudnn_text(process.cudnn),
        python: process.python.clone(),
    }
}

/// The smallest cards of the catalogue with room for the reserved peak and their own context.
fn smallest_cards(run: &Run) -> Vec<FitsOn> {
    const SHOWN: usize = 6;
    let Some(peak) = &run.peak else { return Vec::new() };
    let mut cards: Vec<_> = gpus::cards()
        .iter()
        .filter(|card| {
            peak.reserved.bytes + peak.nccl_bytes + card.context_bytes <= card.memory_bytes
        })
        .collect();
    cards.sort_by_key(|card| card.memory_bytes);
    let fits =
        |card: &&gpus::Card| FitsOn { name: card.name.to_owned(), memory_bytes: card.memory_bytes };
    cards.iter().take(SHOWN).map(fits).collect()
}
