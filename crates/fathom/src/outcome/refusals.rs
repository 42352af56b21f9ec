//! The out-of-memory error that ended a run, if one did.

use study::OutOfMemory;

use super::files::Seen;
use crate::here::from_here;

/// An out-of-memory error that ended the run. In one that was broken off the script may have caught it, and
/// gone on.
pub(super) fn of(seen: &Seen, is_unfinished: bool) -> Option<OutOfMemory> {
    let is_certain = seen.end().is_some_and(|end| end.kind != "exit") || !is_unfinished;
    refusal_that_ended(seen).filter(|_| is_certain)
}

/// An out-of-memory error that was not caught, or after which no step was completed.
pub(super) fn refusal_that_ended(seen: &Seen) -> Option<OutOfMemory> {
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
