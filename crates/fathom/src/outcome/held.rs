//! Who held the memory: the recording that the recorder left in the run's folder.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anatomy::{Around, Known};
use study::{Context, Peak, Run, Study, Wants};

use super::files::Seen;
use super::processes;
use super::refusals::refusal_that_ended;
use crate::here;

/// How the note begins on a recording that cannot be read.
pub(crate) const NOT_KNOWN: &str = "who holds the memory is not known";

/// The recording of a process, of the card it used most.
pub(super) fn file_of(seen: &Seen) -> String {
    format!("recording.{}.{}.fathom", seen.pid, seen.device().0)
}

/// Adds the study of the process that used the card most, if it was recorded; with its source if the run `keeps` it.
pub(super) fn add(run: &mut Run, folder: &Path, main: &Seen, keeps: bool) {
    let name = file_of(main);
    let bytes = match fs::read(folder.join(&name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        bytes => bytes.map_err(|error| error.to_string()),
    };
    // Another process may have ended the run: this one's failures would not be the reason.
    let is_ours = run.out_of_memory.is_some() && refusal_that_ended(main).is_some();
    let result =
        bytes.and_then(|bytes| recording::file::read(&bytes).map_err(|error| error.to_string()));
    let result = result.and_then(|mut recording| {
        let around = around(run, main, recording.about.memory_bytes);
        recording.about.context_bytes = around.context.0;
        // What other programs hold is no part of the card that the run has.
        recording.about.memory_bytes =
            recording.about.memory_bytes.saturating_sub(around.programs_bytes);
        let wants = Wants {
            fragments: is_ours,
            floor: run.out_of_memory.is_none(),
            deferred: !are_events_late(),
            source: keeps,
        };
        let (around, folder) = (Some(around), here::folder());
        study::study(recording, &Context { around, folder, ran_out: Some(is_ours), wants })
    });
    match result {
        Ok(study) => take(run, study),
        Err(why) => run.notes.push(format!("{NOT_KNOWN}: {name}: {why}")),
    }
}

/// What the study says of the run.
fn take(run: &mut Run, study: Study) {
    let nccl = run.peak.as_ref().map_or(0, |peak| peak.nccl_bytes);
    let used = run.card.as_ref().map_or(0, |card| card.used_bytes);
    let floor = study.floor_bytes.map(|bytes| bytes + nccl);
    run.floor_bytes = floor.map(|bytes| processes::enough(run, bytes) + used);
    run.notes.extend(study.notes.iter().cloned());
    run.notes.extend(missing(&study, run.peak.as_ref()));
    if let Some(refusal) = &mut run.out_of_memory {
        refusal.shortage = study.fragments.as_ref().and_then(|pieces| pieces.shortage.clone());
    }
    run.study = Some(study).filter(|study| study.anatomy.events != 0);
}

/// What stands around PyTorch's memory on the card of the run, which has so many bytes.
fn around(run: &Run, main: &Seen, memory_bytes: u64) -> Around {
    let context_bytes = main.page.devices[main.device().0].context;
    let Some(card) = &run.card else {
        return Around { context: (context_bytes, Known::Measured), ..Around::default() };
    };
    let known = if card.is_context_assumed() { Known::Assumed } else { Known::Measured };
    Around {
        card_bytes: (memory_bytes != 0).then_some(memory_bytes),
        programs_bytes: card.used_bytes,
        others: processes::others(run),
        context: (context_bytes, known),
        nccl_bytes: run.peak.as_ref().map_or(0, |peak| peak.nccl_bytes),
    }
}

/// Whether the phantom was told to be the slowest card itself: then nothing is done at once.
fn are_events_late() -> bool {
    std::env::var(contract::environment::EVENTS).is_ok_and(|text| text == "late")
}

/// A recording may end before its process did; then it may not have seen the peak.
fn missing(study: &Study, peak: Option<&Peak>) -> Option<String> {
    let (seen, counted) = (study.anatomy.allocated_peak.allocated, peak?.allocated.bytes);
    if counted != 0 && seen != counted {
        let (seen, counted) = (report::bytes::text(seen), report::bytes::text(counted));
        return Some(format!("what was recorded has a peak of {seen}, PyTorch counted {counted}"));
    }
    (!study.is_whole).then(|| "the recording ends before its process did".to_owned())
}
