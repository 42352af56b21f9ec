//! The peak: its bytes, who raised it, and the parts that have rows of their own.

use serde::Serialize;
use study::Run;

use super::body::{OriginRow, place};
use crate::workspaces;

#[derive(Serialize)]
pub(super) struct Peak<'a> {
    requested_bytes: u64,
    allocated_bytes: u64,
    /// Without work areas that PyTorch goes on without; only if there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    hard_allocated_bytes: Option<u64>,
    reserved_bytes: u64,
    /// All processes together, contexts included.
    device_bytes: u64,
    /// The process that the rest is about, its context included.
    process_bytes: u64,
    /// Modelled; part of `device_bytes`.
    nccl_bytes: u64,
    step: u64,
    phase: &'a str,
    #[serde(flatten)]
    origin: OriginRow<'a>,
    reserved_step: u64,
    reserved_phase: &'a str,
    /// Who raised the reserved peak.
    reserved_by: Option<OriginRow<'a>>,
}

impl<'a> Peak<'a> {
    pub(super) fn of(run: &'a Run) -> Option<Peak<'a>> {
        let anatomy = run.anatomy();
        let cause = anatomy.and_then(|anatomy| anatomy.allocated_peak.raised_by.as_ref());
        run.peak.as_ref().map(|peak| Peak {
            requested_bytes: peak.requested.bytes,
            allocated_bytes: peak.allocated.bytes,
            hard_allocated_bytes: anatomy
                .map(|anatomy| anatomy.hard_allocated)
                .filter(|hard| *hard < peak.allocated.bytes),
            reserved_bytes: peak.reserved.bytes,
            device_bytes: peak.device_bytes,
            process_bytes: peak.process_bytes,
            nccl_bytes: peak.nccl_bytes,
            step: peak.allocated.step,
            phase: &peak.allocated.phase,
            origin: cause.map(place).unwrap_or_default(),
            reserved_step: peak.reserved.step,
            reserved_phase: &peak.reserved.phase,
            reserved_by: anatomy
                .and_then(|anatomy| anatomy.reserved_peak.raised_by.as_ref())
                .map(place),
        })
    }
}

/// Two ends of one range; what is allocated is the same at both.
#[derive(Serialize)]
pub(super) struct Deferred {
    count: usize,
    at_once: Streams,
    late: Streams,
    most_waiting_bytes: u64,
    late_fits: bool,
}

#[derive(Serialize)]
struct Streams {
    reserved_bytes: u64,
    active_bytes: u64,
    known: &'static str,
}

impl Deferred {
    pub(super) fn of(deferred: &study::Deferred) -> Deferred {
        let streams = |[reserved_bytes, active_bytes]: [u64; 2], known| Streams {
            reserved_bytes,
            active_bytes,
            known,
        };
        Deferred {
            count: deferred.frees,
            at_once: streams(deferred.at_once, "measured"),
            late: streams(deferred.late, "modelled"),
            most_waiting_bytes: deferred.most_waiting,
            late_fits: deferred.late_fits,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Unattributed<'a> {
    bytes: u64,
    why: &'a str,
}

impl<'a> Unattributed<'a> {
    pub(super) fn of(rest: &'a study::Unattributed) -> Unattributed<'a> {
        Unattributed { bytes: rest.bytes, why: &rest.why }
    }
}

/// Work areas of one kind of call.
#[derive(Serialize)]
pub(super) struct Workspace {
    kind: &'static str,
    /// `exact`, `modelled`, `measured` or `unknown`.
    known: &'static str,
    calls: Option<u64>,
    largest_bytes: Option<u64>,
    /// Of the allocated peak.
    peak_bytes: Option<u64>,
}

impl Workspace {
    pub(super) fn of(row: workspaces::Row) -> Workspace {
        let workspaces::Row { kind, known, calls, largest_bytes, peak_bytes } = row;
        Workspace { kind, known, calls, largest_bytes, peak_bytes }
    }
}
