//! One card, several processes: who held how much of it when most was held.

use anatomy::Known;
use contract::cards::PeakReading;
use study::{OutOfMemory, Peak, Process, Run};

use super::files::{Left, Seen};
use crate::session::Ended;

/// What the process held when the card was fullest, its context included.
pub(super) fn share_of(seen: &Seen, peak: &PeakReading) -> u64 {
    let own = peak.shares.iter().find(|share| share.pid.to_string() == seen.pid);
    own.map_or(0, |share| share.context + share.used)
}

/// The card's own peak takes the place of the process's; every process that used it gets a row.
pub(super) fn sum_up(peak: Option<&mut Peak>, left: &Left) -> Vec<Process> {
    let (Some(peak), Some((card, fullest))) = (peak, &left.fullest) else {
        return Vec::new();
    };
    peak.device_bytes = peak.device_bytes.max(fullest.bytes);
    peak.contexts = fullest.shares.len().max(1) as u64;
    left.all.iter().filter_map(|seen| row(seen, *card, fullest)).collect()
}

fn row(seen: &Seen, card: usize, fullest: &PeakReading) -> Option<Process> {
    let device = seen.page.devices.iter().find(|device| device.card == Some(card))?;
    let peak_bytes = device.peak + device.context;
    (peak_bytes != 0).then(|| Process {
        pid: seen.pid.parse().unwrap_or(0),
        parent: seen.page.parent,
        command: seen.page.command.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
        bytes: share_of(seen, fullest),
        context_bytes: device.context,
        peak_bytes,
    })
}

/// A process for whose context the card had no room, if the run failed.
pub(super) fn refused_context(all: &[Seen], ended: &Ended) -> Option<OutOfMemory> {
    if ended.status.success() {
        return None;
    }
    let went_on = |seen: &&Seen| seen.end().is_some_and(|end| end.kind != "exception");
    all.iter().filter(|seen| !went_on(seen)).find_map(|seen| {
        let mut refused = seen.page.devices.iter().map(|device| device.context_refused);
        let tried_bytes = refused.find(|bytes| *bytes != 0)?;
        let pid = &seen.pid;
        let message = format!("the GPU has no room for the CUDA context of process {pid}");
        Some(OutOfMemory { tried_bytes, message, ..OutOfMemory::default() })
    })
}

/// What the other processes held when the card was fullest, as far as it was beside the main one's peak, and how
/// that is known.
pub(super) fn others(run: &Run) -> (u64, Known) {
    let (Some(peak), Some(card)) = (&run.peak, &run.card) else { return Default::default() };
    let held: u64 = run.processes.iter().skip(1).map(|process| process.bytes).sum();
    let bytes = held.min(card.available_bytes().saturating_sub(peak.process_bytes));
    // Both moments are the same if this process was at its own peak when the card was at its.
    let is_same = run.processes.first().is_some_and(|main| main.bytes == peak.process_bytes);
    (bytes, if is_same { Known::Measured } else { Known::Modelled })
}

/// Memory with which each process certainly gets on: what the main one can do with, beside the most that
/// each of the others held, or what was in use at the most.
pub(super) fn enough(run: &Run, main: u64) -> u64 {
    let most: u64 = run.processes.iter().skip(1).map(|process| process.peak_bytes).sum();
    let in_use = run.peak.as_ref().map_or(u64::MAX, |peak| peak.device_bytes);
    (main + most).min(in_use)
}
