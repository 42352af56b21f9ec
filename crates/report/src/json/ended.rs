//! What ended a run before its time: a refusal, a signal or a timeout.

use serde::Serialize;
use study::Run;

use super::body::{Held, place};
use crate::why::why;

#[derive(Serialize)]
pub(super) struct OutOfMemory<'a> {
    tried_bytes: u64,
    free_bytes: Option<u64>,
    step: u64,
    phase: &'a str,
    module: Option<&'a str>,
    operator: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u64>,
    message: &'a str,
    /// Why there was no room, in words.
    reason: Option<String>,
    /// What was alive then.
    held: Option<Held<'a>>,
}

impl<'a> OutOfMemory<'a> {
    pub(super) fn of(run: &'a Run) -> Option<OutOfMemory<'a>> {
        let moment = run.anatomy().and_then(|anatomy| anatomy.out_of_memory.as_ref());
        run.out_of_memory.as_ref().map(|refusal| OutOfMemory {
            tried_bytes: refusal.tried_bytes,
            free_bytes: refusal.free_bytes,
            step: refusal.step,
            phase: &refusal.phase,
            module: moment.and_then(|moment| place(&moment.origin).module),
            operator: moment.and_then(|moment| place(&moment.origin).operator),
            file: refusal.file.as_deref(),
            line: refusal.line,
            message: &refusal.message,
            reason: refusal.shortage.as_ref().map(why),
            held: moment.map(|moment| Held::of(&moment.at)),
        })
    }
}

#[derive(Serialize)]
pub(crate) struct Unfinished<'a> {
    /// `interrupted`, `timed_out`.
    reason: &'static str,
    signal: Option<&'a str>,
    after_seconds: f64,
}

impl<'a> Unfinished<'a> {
    pub(crate) fn of(unfinished: &'a study::Unfinished) -> Unfinished<'a> {
        Unfinished {
            reason: unfinished.verdict().name(),
            signal: unfinished.signal.as_deref(),
            after_seconds: (unfinished.seconds * 1000.0).round() / 1000.0,
        }
    }
}
