//! Reads what a run left in its folder and gives the verdict.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use cuda_abi::status::Reading;
use report::{FitsOn, OutOfMemory, Peak, PeakBytes, Run, Software, Verdict, Workspaces};
use serde::Deserialize;

use crate::launch::Ended;
use crate::settings::Settings;

/// `process.<pid>.json`, written by the doorway.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Process {
    python: String,
    torch: String,
    cuda: String,
    cudnn: u64,
    architectures: Vec<String>,
    steps: u64,
    devices: Vec<Device>,
    refusals: Vec<Refusal>,
    refusal_count: u64,
    unreal: Vec<Unreal>,
    end: Option<End>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Device {
    device: usize,
    allocated: Moment,
    reserved: Moment,
    requested: Moment,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Moment {
    bytes: u64,
    phase: String,
    step: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Refusal {
    tried_bytes: u64,
    free_bytes: u64,
    phase: String,
    step: u64,
    steps_done: u64,
    file: Option<String>,
    line: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Unreal {
    operator: String,
    file: Option<String>,
    line: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct End {
    kind: String,
    message: String,
    #[serde(rename = "type")]
    exception: String,
    file: Option<String>,
    line: Option<u64>,
}

/// One process: the doorway's file and the phantom's page, where they exist.
#[derive(Debug, Default)]
struct Seen {
    process: Option<Process>,
    page: Reading,
}

impl Seen {
    /// The card this process used most, and what it took from it, context included.
    fn device(&self) -> (usize, u64) {
        let used = self.page.devices.iter().map(|device| match device.peak {
            0 => 0,
            peak => peak + device.context,
        });
        used.enumerate().max_by_key(|(_, bytes)| *bytes).unwrap_or((0, 0))
    }

    /// Another cuDNN than torch's own gives good sizes, but not the exact ones.
    fn workspaces(&self) -> Workspaces {
        match self.page.workspaces {
            0 => Workspaces::None,
            1 if self.foreign_cudnn().is_none() => Workspaces::Exact,
            _ => Workspaces::Modelled,
        }
    }

    /// The versions that answered and that torch has, where they differ.
    fn foreign_cudnn(&self) -> Option<(u64, u64)> {
        let asked = u64::from(self.page.cudnn_version);
        let own = self.process.as_ref().map_or(0, |process| process.cudnn);
        (asked != 0 && own != 0 && asked / 100 != own / 100).then_some((asked, own))
    }

    fn end(&self) -> Option<&End> {
        self.process.as_ref().and_then(|process| process.end.as_ref())
    }
}

fn read_all(folder: &Path) -> Vec<Seen> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix("phantom.") else { continue };
        let Some(page) = fs::read(entry.path()).ok().and_then(|bytes| Reading::parse(&bytes))
        else {
            continue;
        };
        let file = fs::read_to_string(folder.join(format!("process.{pid}.json")));
        let process = file.ok().and_then(|text| serde_json::from_str(&text).ok());
        all.push(Seen { process, page });
    }
    all.sort_by_key(|seen| std::cmp::Reverse(seen.device().1));
    all
}

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
        budget_bytes: settings.budget,
        out_of_memory,
        failure,
        notes: Vec::new(),
    };
    if settings.card.is_none() && verdict == Verdict::Fits {
        run.fits_on = smallest_cards(&run);
    }
    run.notes = notes(&all, settings, &run);
    run
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
            file: end.file.clone(),
            line: end.line,
            message: end.message.clone(),
            ..OutOfMemory::default()
        });
    }
    let refusal =
        refusal.filter(|refusal| uncaught.is_some() || process.steps <= refusal.steps_done)?;
    Some(OutOfMemory {
        tried_bytes: refusal.tried_bytes,
        free_bytes: Some(refusal.free_bytes),
        phase: refusal.phase.clone(),
        step: refusal.step,
        file: uncaught.and_then(|end| end.file.clone()).or_else(|| refusal.file.clone()),
        line: uncaught.and_then(|end| end.line).or(refusal.line),
        message: uncaught.map(|end| end.message.clone()).unwrap_or_default(),
    })
}

fn failure(ended: &Ended, all: &[Seen], stopped: bool) -> Option<String> {
    if ended.timed_out {
        return Some(format!("ended after {:.0} s: the timeout", ended.seconds));
    }
    if ended.interrupted {
        return Some("interrupted".to_owned());
    }
    // A launcher may report the end that we brought about as a failure of its own.
    if ended.status.success() || stopped {
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

/// 92600 as `9.26.0`.
fn cudnn_text(version: u64) -> String {
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
        .filter(|card| peak.reserved.bytes + card.context_bytes <= card.memory_bytes)
        .collect();
    cards.sort_by_key(|card| card.memory_bytes);
    let fits =
        |card: &&gpus::Card| FitsOn { name: card.name.to_owned(), memory_bytes: card.memory_bytes };
    cards.iter().take(SHOWN).map(fits).collect()
}

fn notes(all: &[Seen], settings: &Settings, run: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(main) = all.first() else { return notes };
    let process = main.process.as_ref();
    if let (Some(card), Some(process)) = (&settings.card, process)
        && let Some(note) = missing_kernels(card, &process.architectures)
    {
        notes.push(note);
    }
    if let Some(process) = process
        && 0 < process.refusal_count
        && run.out_of_memory.is_none()
    {
        let count = process.refusal_count;
        notes.push(format!(
            "ran out of memory {count} times on the way; the script caught it and went on"
        ));
    }
    for unreal in process.iter().flat_map(|process| &process.unreal) {
        let place = match (&unreal.file, unreal.line) {
            (Some(file), Some(line)) => format!(" at {file}:{line}"),
            _ => String::new(),
        };
        notes.push(format!(
            "the result of {}{place} has a size that depends on values the phantom does not compute",
            unreal.operator
        ));
    }
    if 0 < main.page.zero_reads {
        notes.push("large tensors were read back: their values are zeros, not results".to_owned());
    }
    if !main.page.notes.is_empty() {
        let names: Vec<&str> = main.page.notes.lines().take(8).collect();
        notes.push(format!("not simulated, answered with \"not supported\": {}", names.join(", ")));
    }
    if run.peak.is_some() && process.is_none() {
        notes.push(
            "the script's Python was not reached: only the card's own count is known".to_owned(),
        );
    }
    if let Some((asked, own)) = main.foreign_cudnn() {
        notes.push(format!(
            "workspaces were asked of cuDNN {}, since torch's own {} cannot answer without a card",
            cudnn_text(asked),
            cudnn_text(own)
        ));
    }
    notes
}

/// Cards that torch's build no longer has kernels for run here, and would not on the real card.
fn missing_kernels(card: &gpus::Card, architectures: &[String]) -> Option<String> {
    let (major, minor) = card.compute_capability;
    let mut oldest = (u32::MAX, 0);
    for name in architectures {
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        let Ok(number) = digits.parse::<u32>() else { continue };
        let (built_major, built_minor) = (number / 10, number % 10);
        let runs = (built_major == major && built_minor <= minor)
            || (name.starts_with("compute") && (built_major, built_minor) <= (major, minor));
        if runs {
            return None;
        }
        oldest = oldest.min((built_major, built_minor));
    }
    (oldest.0 != u32::MAX).then(|| {
        format!(
            "this torch has no kernels for compute capability {major}.{minor} (built for: {}): it would not run on the real card",
            architectures.join(", ")
        )
    })
}
