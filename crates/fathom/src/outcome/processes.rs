//! One card, several processes: who held how much of it when most was held.

use std::fs;
use std::path::Path;

use anatomy::{Anatomy, Entry, Known};
use cuda_abi::cards::{FILE, PeakReading};
use report::{OutOfMemory, Peak, Process, Run};

use super::files::Seen;
use crate::session::Ended;

/// The card of which most was held at once, by its number in the machine.
pub(super) fn fullest_card(folder: &Path) -> Option<(usize, PeakReading)> {
    let peaks = PeakReading::parse(&fs::read(folder.join(FILE)).ok()?)?;
    let fullest = peaks.into_iter().enumerate().rev().max_by_key(|(_, peak)| peak.bytes)?;
    Some(fullest).filter(|(_, peak)| peak.bytes != 0)
}

/// What the process held when the card was fullest, its context included.
pub(super) fn share_of(seen: &Seen, peak: &PeakReading) -> u64 {
    let own = peak.shares.iter().find(|share| share.pid.to_string() == seen.pid);
    own.map_or(0, |share| share.context + share.used)
}

/// The card's own peak takes the place of the process's; every process that used it gets a row.
pub(super) fn sum_up(peak: Option<&mut Peak>, folder: &Path, all: &[Seen]) -> Vec<Process> {
    let (Some(peak), Some((card, fullest))) = (peak, fullest_card(folder)) else {
        return Vec::new();
    };
    peak.device_bytes = peak.device_bytes.max(fullest.bytes);
    peak.contexts = fullest.shares.len().max(1) as u64;
    all.iter().filter_map(|seen| row(seen, card, &fullest)).collect()
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

/// What the other processes held when the card was fullest, as far as it was beside the main one's peak.
pub(super) fn others(run: &Run) -> u64 {
    let (Some(peak), Some(card)) = (&run.peak, &run.card) else { return 0 };
    let held: u64 = run.processes.iter().skip(1).map(|process| process.bytes).sum();
    held.min(card.available_bytes().saturating_sub(peak.process_bytes))
}

/// Memory with which each process certainly gets on: what the main one can do with, beside the most that
/// each of the others held, or what was in use at the most.
pub(super) fn enough(run: &Run, main: u64) -> u64 {
    let most: u64 = run.processes.iter().skip(1).map(|process| process.peak_bytes).sum();
    let in_use = run.peak.as_ref().map_or(u64::MAX, |peak| peak.device_bytes);
    (main + most).min(in_use)
}

/// The ledger takes all that is not this process's memory for its context: others get a row of their own.
pub(super) fn add_to_ledger(anatomy: &mut Anatomy, run: &Run) {
    let bytes = others(run);
    if bytes == 0 {
        return;
    }
    let is_whole = run.peak.as_ref().is_some_and(|peak| {
        run.processes.first().is_some_and(|main| main.bytes == peak.process_bytes)
    });
    let refusal = anatomy.out_of_memory.as_mut().map(|refusal| &mut refusal.at);
    for at in [&mut anatomy.allocated_peak, &mut anatomy.reserved_peak].into_iter().chain(refusal) {
        let Some(place) = at.ledger.iter().position(|row| row.name == "context") else { continue };
        at.ledger[place].bytes = at.ledger[place].bytes.saturating_sub(bytes);
        // Both moments are the same if this process was at its own peak when the card was at its.
        let known = if is_whole { Known::Measured } else { Known::Modelled };
        at.ledger.insert(place, Entry { name: "others", bytes, known, depth: 1 });
    }
}
