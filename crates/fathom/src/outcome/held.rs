//! Who held the memory: the recording that the recorder left in the run's folder.

use std::fs;
use std::path::Path;

use anatomy::{Anatomy, Entry, Known};
use report::{Card, Peak, Run};

use super::files::Seen;
use super::{processes, refusal_that_ended};
use crate::dissect::{deferred, dissect, smallest_card};
use crate::fragments::fragments;

/// The recording of a process, of the card it used most.
pub(super) fn file_of(seen: &Seen) -> String {
    format!("recording.{}.{}.fathom", seen.pid, seen.device().0)
}

/// Adds the anatomy of the process that used the card most, if it was recorded.
pub(super) fn add(run: &mut Run, folder: &Path, main: &Seen) {
    let name = file_of(main);
    let Ok(bytes) = fs::read(folder.join(&name)) else { return };
    let result = recording::file::read(&bytes).map_err(|error| error.to_string());
    let nccl = run.peak.as_ref().map_or(0, |peak| peak.nccl_bytes);
    let used = run.card.as_ref().map_or(0, |card| card.used_bytes);
    let result = result.and_then(|mut recording| {
        let is_whole = recording.about.complete;
        let about = &mut recording.about;
        about.context_bytes = main.page.devices[main.device().0].context;
        // What other programs hold is no part of the card that the run has.
        about.memory_bytes = about.memory_bytes.saturating_sub(used);
        if run.out_of_memory.is_none() {
            let floor = smallest_card(&recording).map(|bytes| bytes + nccl);
            run.floor_bytes = floor.map(|bytes| processes::enough(run, bytes) + used);
        }
        recording.about.context_bytes += processes::others(run);
        run.deferred = deferred(&recording).filter(|_| !are_events_late());
        let (anatomy, notes) = dissect(&recording)?;
        // Another process may have ended the run: this one's failures would not be the reason.
        if let Some(refusal) =
            run.out_of_memory.as_mut().filter(|_| refusal_that_ended(main).is_some())
        {
            refusal.shortage = fragments(&recording, &anatomy).and_then(|pieces| pieces.shortage);
        }
        Ok((anatomy, notes, is_whole))
    });
    match result {
        Ok((mut anatomy, notes, is_whole)) => {
            run.notes.extend(notes);
            run.notes.extend(missing(&anatomy, run.peak.as_ref(), is_whole));
            mark_assumed(&mut anatomy, run.card.as_ref());
            add_nccl(&mut anatomy, nccl);
            processes::add_to_ledger(&mut anatomy, run);
            add_programs(&mut anatomy, used);
            let is_ours = run.out_of_memory.is_some() && refusal_that_ended(main).is_some();
            run.findings = diagnose::diagnose(&anatomy, is_ours);
            run.anatomy = Some(anatomy).filter(|anatomy| anatomy.events != 0);
        }
        Err(why) => run.notes.push(format!("who holds the memory is not known: {name}: {why}")),
    }
}

/// Whether the phantom was told to be the slowest card itself: then nothing is done at once.
fn are_events_late() -> bool {
    std::env::var(cuda_abi::environment::EVENTS).is_ok_and(|text| text == "late")
}

/// A recording may end before its process did; then it may not have seen the peak.
fn missing(anatomy: &Anatomy, peak: Option<&Peak>, is_whole: bool) -> Option<String> {
    let (seen, counted) = (anatomy.allocated_peak.allocated, peak?.allocated.bytes);
    if counted != 0 && seen != counted {
        let (seen, counted) = (report::bytes::text(seen), report::bytes::text(counted));
        return Some(format!("what was recorded has a peak of {seen}, PyTorch counted {counted}"));
    }
    (!is_whole).then(|| "the recording ends before its process did".to_owned())
}

/// What NCCL is taken to hold is neither PyTorch's nor free.
fn add_nccl(anatomy: &mut Anatomy, bytes: u64) {
    if bytes == 0 {
        return;
    }
    let refusal = anatomy.out_of_memory.as_mut().map(|refusal| &mut refusal.at);
    for at in [&mut anatomy.allocated_peak, &mut anatomy.reserved_peak].into_iter().chain(refusal) {
        let Some(place) = at.ledger.iter().position(|row| row.name == "free") else { continue };
        let taken = bytes.min(at.ledger[place].bytes);
        at.ledger[place].bytes -= taken;
        let row = Entry { name: "nccl", bytes: taken, known: Known::Modelled, depth: 1 };
        at.ledger.insert(place, row);
    }
}

/// What other programs hold: a part of the card, and nobody's to give.
fn add_programs(anatomy: &mut Anatomy, bytes: u64) {
    if bytes == 0 {
        return;
    }
    let refusal = anatomy.out_of_memory.as_mut().map(|refusal| &mut refusal.at);
    for at in [&mut anatomy.allocated_peak, &mut anatomy.reserved_peak].into_iter().chain(refusal) {
        let Some(card) = at.ledger.iter().position(|row| row.name == "card") else { continue };
        at.ledger[card].bytes += bytes;
        let row = Entry { name: "programs", bytes, known: Known::Assumed, depth: 1 };
        at.ledger.insert(card + 1, row);
    }
}

/// The card's rows of the ledger: without a card there is no total, and a context may be assumed.
fn mark_assumed(anatomy: &mut Anatomy, card: Option<&Card>) {
    let refusal = anatomy.out_of_memory.as_mut().map(|refusal| &mut refusal.at);
    for at in [&mut anatomy.allocated_peak, &mut anatomy.reserved_peak].into_iter().chain(refusal) {
        match card {
            None => at.ledger.retain(|row| !matches!(row.name, "card" | "context" | "free")),
            Some(card) if card.context_assumed => {
                let rows = at.ledger.iter_mut();
                rows.filter(|row: &&mut Entry| matches!(row.name, "context" | "free"))
                    .for_each(|row| row.known = Known::Assumed);
            }
            Some(_) => {}
        }
    }
}
