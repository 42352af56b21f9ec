//! What the run needs: the smallest GPU, the run without a limit, the most that unknown values can give.

use serde::Serialize;
use study::Run;

/// The smallest GPU on which the run goes through, context included.
#[derive(Serialize)]
pub(super) struct Need {
    bytes: u64,
    /// `run`, `enough`, `replay` or `taken`.
    known: &'static str,
    /// How far a real card may be off.
    error_bytes: u64,
}

impl Need {
    /// What a run that ran out or was broken off had by then is no need.
    pub(super) fn of_whole(run: &Run) -> Option<Need> {
        let is_whole = run.out_of_memory.is_none() && run.failure.is_none();
        run.needed().filter(|_| is_whole).map(|need| Need::of(run, need))
    }

    fn of(run: &Run, need: study::Need) -> Need {
        let error_bytes = run.error_of(need.bytes);
        Need { bytes: need.bytes, known: need.known.name(), error_bytes }
    }
}

#[derive(Serialize)]
pub(super) struct Beyond<'a> {
    need: Option<Need>,
    allocated_bytes: u64,
    phase: &'a str,
    step: u64,
    raised_by: Option<String>,
    cause: Option<&'a str>,
    failure: Option<&'a str>,
}

impl<'a> Beyond<'a> {
    pub(super) fn of(run: &Run, beyond: &'a study::Beyond) -> Beyond<'a> {
        let raised_by = beyond.raised_by.as_ref().map(crate::explain::by);
        Beyond {
            need: beyond.need.map(|need| Need::of(run, need)),
            allocated_bytes: beyond.peak.bytes,
            phase: &beyond.peak.phase,
            step: beyond.peak.step,
            raised_by: raised_by.map(|by| by.trim_start().to_owned()),
            cause: beyond.cause.as_ref().map(|(title, _)| title.as_str()),
            failure: beyond.failure.as_deref(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct MostNeeded<'a> {
    device_bytes: Option<u64>,
    fits: bool,
    is_same: bool,
    failure: Option<&'a str>,
}

impl<'a> MostNeeded<'a> {
    pub(super) fn of(most: &'a study::Most) -> MostNeeded<'a> {
        MostNeeded {
            device_bytes: most.device_bytes,
            fits: most.fits,
            is_same: most.is_same,
            failure: most.failure.as_deref(),
        }
    }
}
