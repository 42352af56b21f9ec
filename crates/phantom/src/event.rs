//! Events: complete as soon as they are recorded, with the host's time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use cuda_abi::types::Handle;

use crate::error::{Answer, Failure};
use crate::graph;
use crate::state::{lock, new_handle};

/// The least time between two events. Kernels take none here, and what is left is noise: with a
/// floor all trials of an autotuner tie, and it makes the same choice in every run.
const LEAST_MILLISECONDS: f32 = 100.0;

/// When each event was last recorded.
static RECORDED: Mutex<BTreeMap<Handle, Instant>> = Mutex::new(BTreeMap::new());

pub(crate) fn create(out: &mut Handle) -> Answer {
    *out = new_handle();
    Ok(())
}

pub(crate) fn destroy(event: Handle) -> Answer {
    lock(&RECORDED).remove(&event);
    graph::forget_event(event);
    Ok(())
}

pub(crate) fn record(event: Handle, stream: Handle) -> Answer {
    lock(&RECORDED).insert(event, Instant::now());
    graph::mark_event(event, stream);
    Ok(())
}

pub(crate) fn elapsed(out: &mut f32, start: Handle, end: Handle) -> Answer {
    let recorded = lock(&RECORDED);
    let time = |event| recorded.get(&event).copied().ok_or(Failure::InvalidHandle);
    let (start, end) = (time(start)?, time(end)?);
    let time = end.saturating_duration_since(start).as_secs_f32() * 1e3;
    *out = time.max(LEAST_MILLISECONDS);
    Ok(())
}
