//! Reads what a run left in its folder and gives the verdict.

mod decisions;
mod end;
mod files;
mod fits_on;
mod held;
mod notes;
mod peak;
mod processes;
mod refusals;
mod software;
mod training;
mod unattributed;
mod workspaces;

use std::fs;
use std::path::{Path, PathBuf};

use contract::files::Process;
use study::{Run, Verdict};

pub(crate) use self::decisions::{adopt, settle};
pub(crate) use self::end::UNFINISHED;
use self::end::{failure, named, notes_of_end, unfinished};
use self::files::{Left, Seen};
pub(crate) use self::files::{check_pages, read_each};
pub(crate) use self::held::NOT_KNOWN;
use self::notes::{missing_kernels, notes};
pub(crate) use self::training::{
    have_same_allocations, iterated, largest_batch, pace, refused, unreached,
};
use self::workspaces::workspaces;
use crate::session::Ended;
use crate::settings::Settings;
use crate::visible;

/// Puts a run together from what its processes left.
pub(crate) fn read(folder: &Path, ended: &Ended, settings: &Settings) -> Run {
    let left = Left::read(folder);
    let all = &left.all;
    let main = all.first();
    let process = main.and_then(|seen| seen.process.as_ref());
    let targets = process.map_or(&[][..], |process| &process.architectures);
    let stopped = all.iter().any(|seen| seen.end().is_some_and(|end| end.kind == "stopped"));
    let unfinished = unfinished(ended).filter(|_| !stopped);
    let out_of_memory = all.iter().find_map(|seen| refusals::of(seen, unfinished.is_some()));
    let refused_context = processes::refused_context(all, ended).filter(|_| unfinished.is_none());
    let out_of_memory = out_of_memory.or(refused_context);
    let mut peak = main.filter(|seen| 0 < seen.device().1).map(peak::of);
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
        has_kernels: software::has_kernels(settings, targets),
        software: process.map(software::of).unwrap_or_default(),
        workspaces: Vec::new(),
        steps: all.iter().filter_map(Seen::steps).max().unwrap_or(0),
        flushes: process.map_or(0, flushes),
        caught: process.map_or(0, |process| process.refusal_count),
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
    process.into_iter().for_each(|process| decisions::add(&mut run, process));
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

/// What the processes of a run left that cannot be read, as sentences.
pub(crate) fn unread(folder: &Path) -> Vec<String> {
    Left::read(folder).unread
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
