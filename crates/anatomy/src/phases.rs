//! Phases and steps with their own peaks.

use allocator::Timeline;
use recording::Phase;

use crate::anatomy::{PhasePeak, StepPeak, When};
use crate::ledger;
use crate::lives::Lives;

/// Phases that are part of a step of a training, or of a round of inference.
const OF_STEPS: [Phase; 5] =
    [Phase::Forward, Phase::Backward, Phase::BeforeOptimizer, Phase::Optimizer, Phase::Inference];

/// One row for each phase of each step, in the order in which they first ran. The state at its
/// beginning counts as part of a phase.
pub(crate) fn phases(lives: &Lives, timeline: &Timeline) -> Vec<PhasePeak> {
    let mut rows: Vec<PhasePeak> = Vec::new();
    let ends = lives.spans.iter().skip(1).map(|span| span.from);
    let ends = ends.chain([timeline.moments.len() + 1]);
    for (span, end) in lives.spans.iter().zip(ends) {
        if end <= span.from {
            continue;
        }
        let row = row_of(&mut rows, span.when);
        for time in span.from..end {
            let moment = ledger::moment(timeline, time);
            row.allocated = row.allocated.max(moment.allocated);
            row.reserved = row.reserved.max(moment.reserved);
        }
    }
    rows
}

/// The row of a phase, new or known. Steps follow each other, so a known one is near the end.
fn row_of(rows: &mut Vec<PhasePeak>, when: When) -> &mut PhasePeak {
    let of_this_step = rows.iter().rev().take_while(|row| row.when.step == when.step);
    let back = of_this_step.take(Phase::ALL.len() + 1).position(|row| row.when == when);
    let index = match back {
        Some(back) => rows.len() - 1 - back,
        None => {
            rows.push(PhasePeak { when, ..PhasePeak::default() });
            rows.len() - 1
        }
    };
    &mut rows[index]
}

/// Steps in order.
pub(crate) fn steps(phases: &[PhasePeak]) -> Vec<StepPeak> {
    let mut steps: Vec<StepPeak> = Vec::new();
    let is_of_step = |row: &&PhasePeak| row.when.phase.is_some_and(|p| OF_STEPS.contains(&p));
    for row in phases.iter().filter(is_of_step) {
        if steps.last().is_none_or(|last| last.step != row.when.step) {
            steps.push(StepPeak { step: row.when.step, ..StepPeak::default() });
        }
        if let Some(step) = steps.last_mut() {
            step.allocated = step.allocated.max(row.allocated);
            step.reserved = step.reserved.max(row.reserved);
        }
    }
    steps
}
