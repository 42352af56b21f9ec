//! Memory that the card gave and of which it is not known what holds it. The status page counts every byte
//! at once; PyTorch's own count and the recording are written down from time to time, and may end earlier.

use recording::Phase;
use study::{Run, Unattributed};

use super::files::Seen;

/// What is missing between the card's count and the most that PyTorch, or the recording, had by then.
pub(super) fn of(run: &Run, main: &Seen) -> Option<Unattributed> {
    let card = main.page.devices.get(main.device().0)?;
    let recorded = run.anatomy().map(|anatomy| anatomy.reserved_peak.reserved);
    let explained = match is_cut_short(main) {
        true => recorded.unwrap_or(0),
        false => recorded.unwrap_or(0).max(reserved(main)),
    };
    let bytes = card.peak.saturating_sub(card.nccl).saturating_sub(explained);
    let steps = main.process.as_ref().map(|process| process.steps);
    let why = match (is_cut_short(main), steps) {
        (false, _) => "taken by other libraries than PyTorch".to_owned(),
        (true, None) if main.is_unread => "what the process says of it cannot be read".to_owned(),
        (true, None) => "the process ended before anything was recorded".to_owned(),
        (true, Some(steps)) => {
            let after = if steps == 0 { "before step 1 was over" } else { "after the last record" };
            format!(
                "taken {after}, and the process ended before it was recorded; \
                 what follows is the peak of what was"
            )
        }
    };
    (bytes != 0).then_some(Unattributed { bytes, why })
}

/// Whether the process was ended before it could say all that it knew.
pub(super) fn is_cut_short(seen: &Seen) -> bool {
    seen.end().is_none()
}

/// Steps that the recording saw to their end: it may know of more than the process had written down.
pub(super) fn recorded_steps(run: &Run) -> u64 {
    let phases = run.anatomy().into_iter().flat_map(|anatomy| &anatomy.phases);
    let steps = phases.filter(|phase| phase.when.phase == Some(Phase::Optimizer));
    steps.map(|phase| u64::from(phase.when.step)).max().unwrap_or(0)
}

/// What PyTorch said it had reserved at most.
fn reserved(seen: &Seen) -> u64 {
    let devices = seen.process.iter().flat_map(|process| &process.devices);
    let own = devices.filter(|device| device.device == seen.device().0 as u64);
    own.filter_map(|device| device.reserved.as_ref()).map(|moment| moment.bytes).max().unwrap_or(0)
}
