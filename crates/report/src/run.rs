//! What is known of a run when it is over.

use crate::fragments::Shortage;
use crate::ranks::Ranks;

/// The answer to "will it fit".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The run went through.
    Fits,
    /// It ran out of memory, or went over the budget.
    DoesNotFit,
    /// It fits, and needs more than its baseline and the margin allow.
    Grew,
    /// The script failed by itself.
    ScriptFailed,
}

impl Verdict {
    /// As in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Fits => "fits",
            Verdict::DoesNotFit => "does_not_fit",
            Verdict::Grew => "grew",
            Verdict::ScriptFailed => "script_failed",
        }
    }
}

/// Where convolution workspaces came from, the weakest source last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workspaces {
    /// None were needed.
    None,
    /// From the real cuDNN, for this card.
    Exact,
    /// From a model.
    Modelled,
}

/// The card the run was made for.
#[derive(Clone, Debug)]
pub struct Card {
    /// Name in the catalogue.
    pub name: String,
    /// The driver's name of it.
    pub title: String,
    /// Total memory.
    pub memory_bytes: u64,
    /// What a process needs before its first tensor.
    pub context_bytes: u64,
    /// Whether the context's size is assumed, not measured on such a card.
    pub context_assumed: bool,
    /// As in (8, 6).
    pub compute_capability: (u32, u32),
}

/// Versions.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Software {
    pub torch: String,
    pub cuda: String,
    pub cudnn: String,
    pub python: String,
}

/// One peak and when it was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeakBytes {
    /// How much.
    pub bytes: u64,
    /// construction, forward, backward, optimizer, evaluation, between steps.
    pub phase: String,
    /// From 1.
    pub step: u64,
}

/// The peaks of the process that used the card most; all measured by PyTorch's own allocator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// What the tensors asked for.
    pub requested: PeakBytes,
    /// With rounding: `max_memory_allocated`.
    pub allocated: PeakBytes,
    /// With cached memory: `max_memory_reserved`.
    pub reserved: PeakBytes,
    /// Memory taken from the card, context included.
    pub device_bytes: u64,
    /// The part of it that NCCL is taken to hold: modelled.
    pub nccl_bytes: u64,
}

/// Frees that waited for work of other streams (`record_stream`), and what depends on when it is done.
/// What is allocated does not: it counts up to the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deferred {
    /// How many there were.
    pub frees: usize,
    /// Reserved and active peak when work is done as soon as it is launched: measured.
    pub at_once: [u64; 2],
    /// The same when work is done only once the host has waited for it: modelled.
    pub late: [u64; 2],
    /// The most bytes that wait at one time then.
    pub most_waiting: u64,
    /// Whether the card still does then.
    pub late_fits: bool,
}

/// An allocation that the card refused and that ended the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutOfMemory {
    /// What PyTorch tried to allocate.
    pub tried_bytes: u64,
    /// What the card had left, where that is known.
    pub free_bytes: Option<u64>,
    /// Phase and step.
    pub phase: String,
    /// From 1.
    pub step: u64,
    /// The user's line.
    pub file: Option<String>,
    /// Its number.
    pub line: Option<u64>,
    /// PyTorch's own text.
    pub message: String,
    /// Why there was no room, if the recording tells.
    pub shortage: Option<Shortage>,
}

/// A card of the catalogue on which the run would fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitsOn {
    /// Name in the catalogue.
    pub name: String,
    /// Total memory.
    pub memory_bytes: u64,
}

/// A run beside its baseline.
#[derive(Clone, Debug)]
pub struct Against {
    /// The baseline's file, as it was given.
    pub file: String,
    /// What changed.
    pub comparison: gate::Comparison,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Fits or not.
    pub verdict: Verdict,
    /// Exit code of the command.
    pub exit_code: i32,
    /// `None`: unlimited memory.
    pub card: Option<Card>,
    /// Versions.
    pub software: Software,
    /// Source of workspaces.
    pub workspaces: Workspaces,
    /// Optimizer steps taken.
    pub steps: u64,
    /// Whether the run was stopped after the wanted steps.
    pub stopped: bool,
    /// From start to end of the command.
    pub wall_seconds: f64,
    /// `None`: nothing used the card.
    pub peak: Option<Peak>,
    /// Who holds every byte; `None` if nothing was recorded.
    pub anatomy: Option<anatomy::Anatomy>,
    /// Root causes, the largest first.
    pub findings: Vec<diagnose::Finding>,
    /// Remedies that were asked about.
    pub answers: Vec<diagnose::Answer>,
    /// The smallest card memory on which the run still completes, where it was searched for.
    pub floor_bytes: Option<u64>,
    /// The budget, if one was given.
    pub budget_bytes: Option<u64>,
    /// How it compares with a baseline, if one was given.
    pub against: Option<Against>,
    /// What ended the run, if memory did.
    pub out_of_memory: Option<OutOfMemory>,
    /// What ended the run, if the script failed.
    pub failure: Option<String>,
    /// Without a card: the smallest cards that would do, by memory.
    pub fits_on: Vec<FitsOn>,
    /// In a world of several ranks: those that ran. The rest of this is about the worst of them.
    pub ranks: Option<Ranks>,
    /// How the peak depends on the order of work; `None` if no free waited for another stream.
    pub deferred: Option<Deferred>,
    /// What the reader should know about these numbers.
    pub notes: Vec<String>,
}
