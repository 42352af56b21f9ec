//! Reads what a run left in its folder and gives the verdict.

mod files;
mod fits_on;
mod held;
mod notes;
mod processes;
mod unattributed;
mod workspaces;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use contract::files::process::{End, Loader, Moment};
use contract::files::{Early, Process};
use study::{
    Batches, Decision, OutOfMemory, Peak, PeakBytes, Run, Software, Unfinished, Varies, Verdict,
};

use self::files::{Left, Seen, decision};
pub(crate) use self::files::{check_pages, read_each};
pub(crate) use self::held::NOT_KNOWN;
use self::notes::{missing_kernels, notes};
use self::workspaces::workspaces;
use crate::here::from_here;
use crate::session::{self, Cut, Ended};
use crate::settings::{Settings, ZERO};
use crate::visible;

/// Exit code of a run that was broken off.
pub(crate) const UNFINISHED: i32 = 4;

/// Places with a sentence of their own where values that are not known decide something.
const PLACES: usize = 4;

/// The signal of `abort()`.
const ABORT: i32 = 6;

/// Puts a run together from what its processes left.
pub(crate) fn read(folder: &Path, ended: &Ended, settings: &Settings) -> Run {
    let left = Left::read(folder);
    let all = &left.all;
    let main = all.first();
    let process = main.and_then(|seen| seen.process.as_ref());
    let targets = process.map_or(&[][..], |process| &process.architectures);
    let stopped = all.iter().any(|seen| seen.end().is_some_and(|end| end.kind == "stopped"));
    let unfinished = unfinished(ended).filter(|_| !stopped);
    let out_of_memory = all.iter().find_map(|seen| refusal(seen, unfinished.is_some()));
    let refused_context = processes::refused_context(all, ended).filter(|_| unfinished.is_none());
    let out_of_memory = out_of_memory.or(refused_context);
    let mut peak = main.filter(|seen| 0 < seen.device().1).map(peak_of);
    let processes = processes::sum_up(peak.as_mut(), &left);
    let failure = match &unfinished {
        Some(unfinished) => Some(unfinished.to_string()),
        None => failure(ended, all, stopped).map(|how| named(&how, all, folder)),
    };
    let (verdict, exit_code) = match (&unfinished, &failure) {
        _ if out_of_memory.is_some() => (Verdict::DoesNotFit, 1),
        (Some(unfinished), _) => (unfinished.verdict(), UNFINISHED),
        (None, Some(_)) => (Verdict::ScriptFailed, 3),
        (None, None) => (Verdict::Fits, 0),
    };
    let mut run = Run {
        verdict,
        exit_code,
        card: settings.card.clone(),
        has_kernels: has_kernels(settings, targets),
        software: process.map(software_of).unwrap_or_default(),
        workspaces: Vec::new(),
        steps: all.iter().filter_map(Seen::steps).max().unwrap_or(0),
        flushes: process.map_or(0, flushes),
        stopped,
        wall_seconds: ended.seconds,
        fits_on: Vec::new(),
        peak,
        study: None,
        answers: Vec::new(),
        processes,
        floor_bytes: None,
        need: None,
        beyond: None,
        budget_bytes: settings.budget,
        against: None,
        out_of_memory,
        failure,
        unfinished,
        unattributed: None,
        ranks: None,
        decisions: Vec::new(),
        modelled: Vec::new(),
        most: None,
        whole: None,
        next: Vec::new(),
        warnings: left.unread.clone(),
        notes: Vec::new(),
    };
    run.warnings.extend(settings.card.iter().filter_map(|card| missing_kernels(card, process)));
    run.workspaces = workspaces(all, run.has_kernels);
    run.notes = notes(all, settings, &run);
    run.notes.extend(visible::note(settings).filter(|_| run.peak.is_none()));
    run.notes.extend(notes_of_end(ended, &run));
    main.into_iter().for_each(|main| add_held(&mut run, folder, main, settings));
    process.into_iter().for_each(|process| add_decisions(&mut run, process));
    run.judge_by_budget();
    run.notes.extend(report::workspaces_sentence(&run));
    if settings.card.is_none() && verdict == Verdict::Fits {
        run.fits_on = fits_on::fits_on(&run, &gpus::unlimited(), targets);
    }
    run
}

/// On the card where it happened most.
fn flushes(process: &Process) -> u64 {
    process.devices.iter().map(|device| device.flushes).max().unwrap_or(0)
}

/// Who held the memory, and how much of it nobody is known to hold.
fn add_held(run: &mut Run, folder: &Path, main: &Seen, settings: &Settings) {
    held::add(run, folder, main, settings.keeps_source);
    // Where nothing is recorded on request, nothing is missing.
    run.unattributed = unattributed::of(run, main).filter(|_| settings.record);
    if unattributed::is_cut_short(main) {
        run.steps = run.steps.max(unattributed::recorded_steps(run));
    }
    if unattributed::is_cut_short(main) || run.unfinished.is_some() {
        run.floor_bytes = None;
    }
}

/// What was decided by values that are not known, or modelled.
fn add_decisions(run: &mut Run, process: &Process) {
    let decisions = process.decisions.iter().map(decision);
    (run.modelled, run.decisions) = decisions.partition(|decision| decision.why == "modelled");
    run.warnings.extend(all_decided(&run.decisions));
    run.notes.extend(can_be_said(run));
    run.notes.extend(run.modelled.first().map(|first| modelled(first, run.modelled.len())));
}

/// Whether the processes of two runs, by their folders, allocated the same and took as many steps.
pub(crate) fn have_same_allocations(one: &Path, other: &Path) -> bool {
    allocations(one).zip(allocations(other)).is_some_and(|(one, other)| one == other)
}

/// All bytes that the processes of a run ever allocated on cards, and how many steps they took; `None` if one of
/// them left what cannot be read.
fn allocations(folder: &Path) -> Option<Vec<(u64, u64)>> {
    let process = |seen: &Seen| {
        let process = seen.process.as_ref()?;
        Some((process.devices.iter().map(|device| device.total_bytes).sum(), process.steps_of_all))
    };
    let left = Left::read(folder);
    let mut all: Vec<(u64, u64)> = left.all.iter().filter_map(process).collect();
    all.sort_unstable();
    left.unread.is_empty().then_some(all)
}

/// How fast a script trains: backward passes of a step, and how long a step takes, in seconds.
pub(crate) fn pace(folder: &Path) -> Option<(u64, f64)> {
    let left = Left::read(folder);
    let process = left.all.first()?.process.as_ref()?;
    let passes = process.backward_passes.div_ceil(process.steps.max(1)).max(1);
    Some((passes, process.step_milliseconds as f64 / 1000.0))
}

/// What a shortened training iterated over, and what it was kept from.
pub(crate) fn iterated(folder: &Path) -> (Vec<Batches>, Vec<String>) {
    let left = Left::read(folder);
    let Some(process) = left.all.first().and_then(|seen| seen.process.as_ref()) else {
        return Default::default();
    };
    (process.loaders.iter().map(batches).collect(), process.refused.clone())
}

/// The shape of the largest batch that a shortened training gave in a step.
pub(crate) fn largest_batch(folder: &Path, step: u64) -> Vec<u64> {
    let left = Left::read(folder);
    let Some(process) = left.all.first().and_then(|seen| seen.process.as_ref()) else {
        return Vec::new();
    };
    let passes = process.backward_passes.div_ceil(process.steps.max(1)).max(1) as usize;
    let first = (step.saturating_sub(1) as usize).saturating_mul(passes);
    let training = process.loaders.iter().find(|loader| !loader.is_evaluation);
    let given = training.map_or(&[][..], |loader| &loader.sizes_given);
    let of_step = given.iter().skip(first).take(passes);
    of_step.max_by_key(|shape| shape.iter().product::<u64>()).cloned().unwrap_or_default()
}

fn batches(loader: &Loader) -> Batches {
    let varies = |tensor: &String| Varies {
        tensor: tensor.clone(),
        smallest: loader.smallest.clone(),
        largest: loader.largest.clone(),
        was_run: loader.was_largest_given,
    };
    Batches {
        is_evaluation: loader.is_evaluation,
        count: loader.batches,
        given: loader.given,
        looked_at: loader.looked_at,
        varies: loader.varies.as_ref().map(varies),
        grows: loader.grows_bytes,
    }
}

/// What the processes of a run left that cannot be read, as sentences.
pub(crate) fn unread(folder: &Path) -> Vec<String> {
    Left::read(folder).unread
}

/// What is unknown moves nothing: that is said once instead of line by line.
pub(crate) fn settle(run: &mut Run) {
    let said = all_decided(&run.decisions);
    run.warnings.retain(|warning| !said.contains(warning));
    let hint = can_be_said(run);
    run.notes.retain(|note| Some(note) != hint.as_ref());
    let Some(first) = run.decisions.first() else { return };
    let others = match run.decisions.len() {
        1 => String::new(),
        2 => " and at one other place".to_owned(),
        count => format!(" and at {} other places", count - 1),
    };
    run.notes.push(format!(
        "what {first}{others} gives is not known, and did not move the peak where the run was tried again, with other values"
    ));
}

/// Recordings of a run's folder; that of the process that used its card most comes first.
pub(crate) fn recordings(folder: &Path) -> Vec<PathBuf> {
    let of_main = Left::read(folder).all.first().map(|main| folder.join(held::file_of(main)));
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.retain(|path| path.extension().is_some_and(|kind| kind == "fathom"));
    all.sort_by_key(|path| (Some(path) != of_main.as_ref(), path.clone()));
    all
}

/// What was decided by weights that stand for others, as a sentence.
fn modelled(first: &Decision, count: usize) -> String {
    let others = match count {
        1 => String::new(),
        2 => " and at one other place".to_owned(),
        count => format!(" and at {} other places", count - 1),
    };
    let with = "is computed with the weights of the first step, also in later ones (modelled)";
    format!("what {first}{others} gives {with}")
}

/// What was decided without knowing: the first places each in a sentence, the others in one.
fn all_decided(decisions: &[Decision]) -> Vec<String> {
    let shown = if decisions.len() <= PLACES + 1 { decisions.len() } else { PLACES };
    let mut said: Vec<String> = decisions.iter().take(shown).map(decided).collect();
    if shown < decisions.len() {
        let others = decisions.len() - shown;
        said.push(format!("{others} other places do so too: `decisions` of --json has them all"));
    }
    said
}

/// What was decided without knowing, as a sentence.
fn decided(decision: &Decision) -> String {
    let below = match (&decision.place, &decision.library) {
        (Some(_), Some((file, line))) => format!(" (in {file}:{line})"),
        _ => String::new(),
    };
    let why = match decision.why.as_str() {
        "dear" => "values that would take too long to compute",
        _ => "values that are not known",
    };
    let assumed = match decision.assumed.as_str() {
        "given" => "what --assume says",
        "most" => "the most that they can give",
        ZERO => "zero",
        _ => "the least that they can give",
    };
    let times =
        if decision.count == 1 { String::new() } else { format!(", {} times", decision.count) };
    if matches!(decision.assumed.as_str(), "one" | "either") {
        let goes = format!("{decision}{below} reads {why}, and the script goes by that{times}");
        return format!("{goes}: 1 stands for the number behind it");
    }
    format!("{decision}{below} asks for {why}{times}: {assumed} was assumed")
}

/// What a user can do about the first place where something was assumed.
fn can_be_said(run: &Run) -> Option<String> {
    let open = run.decisions.iter().filter(|decision| decision.is_open());
    let (file, line) = open.filter_map(|decision| decision.place.as_ref()).next()?;
    let name = file.rsplit('/').next().unwrap_or(file);
    Some(format!("if you know it: `--assume {name}:{line}=NUMBER` says what is found there"))
}

/// Whether the run was broken off, and by what.
fn unfinished(ended: &Ended) -> Option<Unfinished> {
    let Cut { signal, seconds } = ended.cut?;
    Some(Unfinished { signal: signal.map(session::name), seconds })
}

/// An out-of-memory error that ended the run. In one that was broken off the script may have caught it, and
/// gone on.
fn refusal(seen: &Seen, is_unfinished: bool) -> Option<OutOfMemory> {
    let is_certain = seen.end().is_some_and(|end| end.kind != "exit") || !is_unfinished;
    refusal_that_ended(seen).filter(|_| is_certain)
}

/// What signals did to a run that they did not break off, and how it was broken off.
fn notes_of_end(ended: &Ended, run: &Run) -> Option<String> {
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
            message: end.message.clone().unwrap_or_default(),
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
        message: uncaught.and_then(|end| end.message.clone()).unwrap_or_default(),
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
fn named(how: &str, all: &[Seen], folder: &Path) -> String {
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

fn peak_of(seen: &Seen) -> Peak {
    let (index, device_bytes) = seen.device();
    let device = seen
        .process
        .as_ref()
        .and_then(|process| process.devices.iter().find(|d| d.device == index as u64));
    let moment = |moment: &Option<Moment>| {
        let Moment { bytes, phase, step } = moment.clone().unwrap_or_default();
        PeakBytes { bytes, phase, step }
    };
    let (page, nccl_bytes) = (&seen.page.devices[index], seen.page.devices[index].nccl);
    let by_card = PeakBytes { bytes: page.peak.saturating_sub(nccl_bytes), ..PeakBytes::default() };
    let whole = Peak {
        device_bytes,
        process_bytes: device_bytes,
        context_bytes: page.context,
        contexts: 1,
        nccl_bytes,
        ..Peak::default()
    };
    match device {
        Some(device) => {
            let by_pytorch = moment(&device.reserved);
            // A process that was killed did not say what it took last; its card did.
            let is_late = unattributed::is_cut_short(seen) && by_pytorch.bytes < by_card.bytes;
            Peak {
                requested: moment(&device.requested),
                allocated: moment(&device.allocated),
                reserved: if is_late { by_card } else { by_pytorch },
                ..whole
            }
        }
        // Without the doorway only the card's own count is known.
        None => Peak { reserved: by_card, ..whole },
    }
}

/// Whether the script's torch has kernels for the card.
fn has_kernels(settings: &Settings, targets: &[String]) -> Option<bool> {
    gpus::has_kernels(targets, settings.card.as_ref()?.compute_capability)
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
        cuda: process.cuda.clone().unwrap_or_default(),
        cudnn: cudnn_text(process.cudnn),
        python: process.python.clone(),
    }
}
