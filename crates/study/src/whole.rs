//! What a training does after its first steps, seen in a shortened one.

use recording::Phase;

use crate::run::Run;

/// Phases that come after the first steps of most trainings.
const LATER: [Phase; 3] = [Phase::Evaluation, Phase::Saving, Phase::AfterTraining];

/// A part of what a phase that was only partly seen leaves behind, from which on it is worth a word: a hundredth.
const WORTH: u64 = 100;

/// A shortened training beside the plain run of its first steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Whole {
    pub came: WholeCame,
    /// Whether the rest of the report is about the shortened training, since it needs more.
    pub is_reported: bool,
    /// Optimizer steps that it took.
    pub steps: u64,
    /// Whether the script came to its own end.
    pub has_ended: bool,
    /// In the order in which they first ran.
    pub phases: Vec<PhaseSeen>,
    /// What it iterated over.
    pub batches: Vec<Batches>,
    /// Lines of the script that begin an evaluation and that it did not come to, as `train.py:12`.
    pub unreached: Vec<String>,
    /// What it was kept from, in words: connections, programs.
    pub refused: Vec<String>,
    /// The same training with its batches in other orders, if that was asked for.
    pub orders: Vec<BatchOrder>,
}

/// A shortened training with its batches in one order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchOrder {
    /// Of the random numbers that shuffle the batches.
    pub seed: u64,
    pub allocated: u64,
    pub device: u64,
    /// Of the allocated peak.
    pub step: u64,
    /// Shape of the largest batch of that step.
    pub batch: Vec<u64>,
    pub ran_out: bool,
}

/// How far a shortened training came.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum WholeCame {
    /// As far as it was let.
    #[default]
    Through,
    /// It ran out of memory.
    RanOut,
    /// It failed, for this reason: what is said here was seen until then.
    Failed(String),
    /// It was not run, for this reason.
    NotRun(String),
}

impl WholeCame {
    /// As in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            WholeCame::Through => "through",
            WholeCame::RanOut => "ran_out",
            WholeCame::Failed(_) => "failed",
            WholeCame::NotRun(_) => "not_run",
        }
    }

    pub fn why(&self) -> Option<&str> {
        match self {
            WholeCame::Failed(why) | WholeCame::NotRun(why) => Some(why),
            _ => None,
        }
    }
}

/// A phase and the most that it took, over all steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSeen {
    pub phase: Phase,
    pub allocated: u64,
    pub reserved: u64,
    /// The most that it took in the plain run; `None` if that did not come to it.
    pub plain: Option<u64>,
}

/// A loader of batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    pub is_evaluation: bool,
    /// Of a pass, as the script has it; `None` if it does not say.
    pub count: Option<u64>,
    /// That a pass gave.
    pub given: u64,
    /// Whose sizes were looked at.
    pub looked_at: u64,
    /// The tensor that varies, and its shape in the smallest and the largest batch.
    pub varies: Option<Varies>,
    /// What each batch of an evaluation leaves on the card.
    pub grows: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Varies {
    pub tensor: String,
    pub smallest: Vec<u64>,
    pub largest: Vec<u64>,
    /// Whether the largest was given once the optimizer had its state.
    pub was_run: bool,
}

impl Batches {
    /// Whether all sizes that may come are known, as far as items are known at all; the last batch is often a rest.
    pub fn are_all_looked_at(&self) -> bool {
        self.count.is_some_and(|count| count <= self.looked_at + 1)
    }

    /// What the batches that were left out would leave on the card besides.
    pub fn unseen_bytes(&self) -> u64 {
        let unseen = self.count.map_or(0, |count| count.saturating_sub(self.given));
        self.grows.saturating_mul(unseen)
    }
}

impl Whole {
    /// One that was not run.
    pub fn not_run(why: impl Into<String>) -> Whole {
        Whole { came: WholeCame::NotRun(why.into()), ..Whole::default() }
    }

    /// What `short` shows beside `plain`.
    pub fn of(plain: &Run, short: &Run, came: WholeCame) -> Whole {
        let has_ended = !short.stopped && came == WholeCame::Through;
        let before = phases(plain, false);
        let found = phases(short, has_ended);
        let row = |(phase, allocated, reserved): &(Phase, u64, u64)| PhaseSeen {
            phase: *phase,
            allocated: *allocated,
            reserved: *reserved,
            plain: before.iter().find(|row| row.0 == *phase).map(|row| row.1),
        };
        let phases = found.iter().map(row).collect();
        Whole { came, steps: short.steps, has_ended, phases, ..Whole::default() }
    }

    /// Whether it is inference and no training.
    pub fn is_inference(&self) -> bool {
        let is = |phase: Phase| self.phases.iter().any(|row| row.phase == phase);
        is(Phase::Inference) && !is(Phase::Backward)
    }

    /// Phases of a training that may come and that neither run came to; none after the script's own end.
    pub fn unseen(&self) -> Vec<Phase> {
        if self.has_ended || self.is_inference() {
            return Vec::new();
        }
        let is_unseen = |phase: &Phase| self.phases.iter().all(|row| row.phase != *phase);
        LATER.into_iter().filter(is_unseen).collect()
    }

    /// Evaluations that the script's text has, of a training that was not broken off, and did not come to them.
    pub fn unreached(&self) -> &[String] {
        let has_more = self.came == WholeCame::Through && !self.has_ended && !self.is_inference();
        if has_more { &self.unreached } else { &[] }
    }

    /// What batches that were left out would take besides, if it is worth a word beside so much.
    pub fn unseen_bytes(&self, beside: u64) -> u64 {
        let unseen = self.batches.iter().map(Batches::unseen_bytes).max().unwrap_or(0);
        if beside / WORTH < unseen { unseen } else { 0 }
    }
}

/// Each phase with its peaks, over all steps. What runs after the last step says nothing of a run that was stopped there.
fn phases(run: &Run, has_ended: bool) -> Vec<(Phase, u64, u64)> {
    let mut found: Vec<(Phase, u64, u64)> = Vec::new();
    for row in run.anatomy().iter().flat_map(|anatomy| &anatomy.phases) {
        let Some(phase) = row.when.phase else { continue };
        if phase == Phase::AfterTraining && !has_ended {
            continue;
        }
        match found.iter_mut().find(|known| known.0 == phase) {
            Some(known) => {
                known.1 = known.1.max(row.allocated);
                known.2 = known.2.max(row.reserved);
            }
            None => found.push((phase, row.allocated, row.reserved)),
        }
    }
    found
}
