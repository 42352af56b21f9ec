//! What a run says: as an answer to a trial, and whether it is one to be remembered.

use fit::{Measured, Outcome, Peaks};
use study::{RestsOn, Run, Verdict};

use crate::cache::{Cache, Counts, How};
use crate::outcome;
use crate::warm::Job;

/// Lines of a failed script that are shown.
const SHOWN_LINES: usize = 6;

/// Remembers a trial that came to an answer by itself: neither a signal nor its time ended it.
pub(super) fn keep(cache: &Cache, key: &str, job: &Job, run: &Run, counts: &mut Counts) {
    let is_answer = matches!(run.verdict, Verdict::Fits | Verdict::DoesNotFit);
    // What cannot be read now could not be read then.
    let is_whole = run.unfinished.is_none() && outcome::unread(&job.folder).is_empty();
    let how = How { seconds: run.wall_seconds, has_failed: run.failure.is_some() };
    match (is_answer && is_whole).then(|| cache.put(key, &job.folder, how)) {
        Some(Ok(())) => {}
        Some(Err(why)) => {
            counts.unshared += 1;
            counts.note(why);
        }
        None => counts.unshared += usize::from(run.verdict != Verdict::Interrupted),
    }
}

/// A run as an answer.
pub(crate) fn measured(job: &Job, run: &Run) -> Measured {
    let peaks = run.peak.as_ref().map_or_else(Peaks::default, |peak| Peaks {
        allocated: peak.allocated.bytes,
        reserved: peak.beside_context(),
        device: peak.device_bytes,
    });
    let outcome = match (run.verdict, &run.peak) {
        (Verdict::Fits, Some(_)) => Outcome::Fits,
        (Verdict::Fits, None) => Outcome::Failed("it did not use the card".to_owned()),
        // A trial has no baseline: none grew.
        (Verdict::DoesNotFit | Verdict::Grew, _) => Outcome::DoesNotFit,
        (Verdict::Interrupted, _) => Outcome::NotRun,
        (Verdict::ScriptFailed | Verdict::TimedOut, _) => {
            let why = run.failure.clone().unwrap_or_default();
            Outcome::Failed(format!("{why}\n{}", job.last_lines(SHOWN_LINES)).trim_end().to_owned())
        }
    };
    Measured { outcome, peaks }
}

/// An answer with what it rests on: `most` are the peaks with the most that unknown values can give.
pub(super) fn qualified(least: Measured, run: &Run, most: Option<&Peaks>) -> Measured {
    if least.outcome != Outcome::Fits {
        return least;
    }
    match (run.rests_on(), most) {
        (RestsOn::Nothing, _) => least,
        // What fits with all that they can give fits.
        (RestsOn::Range(_), Some(most)) => {
            let peaks = largest(&least.peaks, most);
            Measured { peaks, ..least }
        }
        _ => Measured { outcome: Outcome::FitsIf, ..least },
    }
}

/// The larger peak of each kind.
pub(super) fn largest(one: &Peaks, other: &Peaks) -> Peaks {
    Peaks {
        allocated: one.allocated.max(other.allocated),
        reserved: one.reserved.max(other.reserved),
        device: one.device.max(other.device),
    }
}
