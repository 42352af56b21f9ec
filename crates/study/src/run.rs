//! What is known of a run when it is over.

use anatomy::bytes;
use gpus::Card;

use crate::beyond::Beyond;
use crate::decision::{Decision, Most};
use crate::fragments::Shortage;
use crate::need::Need;
use crate::ranks::Ranks;
use crate::study::Study;
use crate::whole::Whole;
use crate::workspaces::Workspace;

/// The answer to "will it fit".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The run went through.
    Fits,
    /// It ran out of memory, or went over the budget.
    DoesNotFit,
    /// It fits, and needs more than its baseline and the margin allow.
    Grew,
    /// The script failed for another reason.
    ScriptFailed,
    /// A signal ended it before its end.
    Interrupted,
    /// The time it was given ended before it did.
    TimedOut,
}

impl Verdict {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Fits => "fits",
            Verdict::DoesNotFit => "does_not_fit",
            Verdict::Grew => "grew",
            Verdict::ScriptFailed => "script_failed",
            Verdict::Interrupted => "interrupted",
            Verdict::TimedOut => "timed_out",
        }
    }
}

/// What broke a run off: what it would have needed after that is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished {
    /// As in `SIGTERM`; `None` if its time was up.
    pub signal: Option<String>,
    /// How long it ran.
    pub seconds: f64,
}

impl Unfinished {
    /// The verdict, if nothing is certain in spite of it.
    pub fn verdict(&self) -> Verdict {
        if self.signal.is_some() { Verdict::Interrupted } else { Verdict::TimedOut }
    }

    /// `by SIGTERM after 8 s`.
    pub fn how(&self) -> String {
        let after = match self.seconds {
            0.0 => "before it started".to_owned(),
            seconds if seconds < 10.0 => format!("after {seconds:.1} s"),
            seconds => format!("after {seconds:.0} s"),
        };
        match &self.signal {
            Some(signal) => format!("by {signal} {after}"),
            None => after,
        }
    }
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = if self.signal.is_some() { "interrupted" } else { "timed out" };
        write!(formatter, "{what} {}", self.how())
    }
}

/// Memory of the card of which it is not known what holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unattributed {
    /// How much, at the peak of the card.
    pub bytes: u64,
    /// The reason, as a clause.
    pub why: String,
}

/// `23.67 GiB`, or `23.67 GiB (2.00 GiB of it in use by others)`.
pub fn memory_text(memory_bytes: u64, used_bytes: u64) -> String {
    let memory = bytes::text(memory_bytes);
    match used_bytes {
        0 => memory,
        used => format!("{memory} ({} of it in use by others)", bytes::text(used)),
    }
}

#[derive(Clone, Debug, Default)]
pub struct Software {
    pub torch: String,
    pub cuda: String,
    pub cudnn: String,
    pub python: String,
}

/// One peak and when it was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeakBytes {
    pub bytes: u64,
    /// construction, forward, backward, optimizer, evaluation, between steps.
    pub phase: String,
    pub step: u64,
}

/// The peaks of the process that used the card most, as PyTorch's own allocator measures them, and the
/// card's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// What the tensors asked for.
    pub requested: PeakBytes,
    /// With rounding: `max_memory_allocated`.
    pub allocated: PeakBytes,
    /// With cached memory: `max_memory_reserved`.
    pub reserved: PeakBytes,
    /// The most that all processes together held of the card, contexts included.
    pub device_bytes: u64,
    /// The most that this process held of it, context included.
    pub process_bytes: u64,
    /// The context of one process.
    pub context_bytes: u64,
    /// How many processes had one when most was held.
    pub contexts: u64,
    /// The part of it that NCCL is taken to hold: modelled.
    pub nccl_bytes: u64,
}

impl Peak {
    /// What the same run would hold of a card on which a context has so many bytes.
    pub fn on_card(&self, context_bytes: u64) -> u64 {
        let held = self.device_bytes.saturating_sub(self.contexts * self.context_bytes);
        held + self.contexts * context_bytes
    }

    /// What was held besides one context and NCCL's buffers: what PyTorch reserved, unless others held
    /// something too.
    pub fn beside_context(&self) -> u64 {
        let held = self.device_bytes.saturating_sub(self.context_bytes + self.nccl_bytes);
        held.max(self.reserved.bytes)
    }

    /// What this process held that PyTorch's statistics do not count.
    pub fn uncounted_bytes(&self) -> u64 {
        let counted = self.reserved.bytes + self.nccl_bytes + self.context_bytes;
        self.process_bytes.saturating_sub(counted)
    }
}

/// A process that used the card of which the run is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// The process that started it.
    pub parent: u32,
    /// Its command line, or the beginning of it.
    pub command: String,
    /// What it held when all together held most, its context included.
    pub bytes: u64,
    /// The part of it that is its context.
    pub context_bytes: u64,
    /// The most that it held itself, at whatever time.
    pub peak_bytes: u64,
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

impl Deferred {
    /// Whether the order of work moves the peak or the verdict.
    pub fn matters(&self) -> bool {
        !self.late_fits || self.at_once[0] != self.late[0]
    }
}

/// What is said of every run that used the phantom.
pub const SIMULATED: &str = "kernels are simulated; ignore printed losses";

/// An allocation that the card refused and that ended the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutOfMemory {
    /// What PyTorch tried to allocate.
    pub tried_bytes: u64,
    /// What the card had left, where that is known.
    pub free_bytes: Option<u64>,
    /// Phase and step.
    pub phase: String,
    pub step: u64,
    /// The user's line.
    pub file: Option<String>,
    pub line: Option<u64>,
    /// PyTorch's own text.
    pub message: String,
    /// Why there was no room, if the recording tells.
    pub shortage: Option<Shortage>,
}

/// How it is known that a run fits a card that it was not made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The script ran on this card.
    Run,
    /// All that the run took at once fits.
    Measured,
    /// It does in a replay, in which PyTorch gives cached memory back.
    Replayed,
    /// It would with the workspaces of the run, and those of this card may differ.
    Likely,
}

impl Fit {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Fit::Run => "run",
            Fit::Measured => "measured",
            Fit::Replayed => "replayed",
            Fit::Likely => "likely",
        }
    }
}

/// A card of the catalogue on which the run would fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitsOn {
    /// Name in the catalogue.
    pub name: String,
    pub memory_bytes: u64,
    /// How that is known.
    pub known: Fit,
    /// What is left there is less than our own error.
    pub is_tight: bool,
}

/// A run beside its baseline.
#[derive(Clone, Debug)]
pub struct Against {
    /// The baseline's file, as it was given.
    pub file: String,
    pub comparison: gate::Comparison,
}

#[derive(Clone, Debug)]
pub struct Run {
    /// Fits or not.
    pub verdict: Verdict,
    /// Exit code of the command.
    pub exit_code: i32,
    /// `None`: unlimited memory.
    pub card: Option<Card>,
    /// Whether the script's torch has kernels that run on it; `None` if that is not known.
    pub has_kernels: Option<bool>,
    pub software: Software,
    /// Work areas of cuDNN by kind, and how their sizes are known.
    pub workspaces: Vec<Workspace>,
    /// Optimizer steps taken.
    pub steps: u64,
    /// How often PyTorch emptied its cache for want of room in the last step.
    pub flushes: u64,
    /// How often a request could not be met, and the script or PyTorch itself went on.
    pub caught: u64,
    /// Whether the run was stopped after the wanted steps.
    pub stopped: bool,
    /// From start to end of the command.
    pub wall_seconds: f64,
    /// `None`: nothing used the card.
    pub peak: Option<Peak>,
    /// Processes that used this card, the one that the rest is about first.
    pub processes: Vec<Process>,
    /// What its recording shows; `None` if nothing was recorded.
    pub study: Option<Study>,
    /// Remedies that were asked about.
    pub answers: Vec<diagnose::Answer>,
    /// The smallest card memory on which the run still completes, where it was searched for.
    pub floor_bytes: Option<u64>,
    /// What it needs, where that was searched for.
    pub need: Option<Need>,
    /// If it does not fit: what it would need.
    pub beyond: Option<Beyond>,
    /// The budget, if one was given.
    pub budget_bytes: Option<u64>,
    /// How it compares with a baseline, if one was given.
    pub against: Option<Against>,
    /// What ended the run, if memory did.
    pub out_of_memory: Option<OutOfMemory>,
    /// What ended the run, if the script failed.
    pub failure: Option<String>,
    /// What broke the run off, if something did.
    pub unfinished: Option<Unfinished>,
    /// What the card gave and nobody is known to hold.
    pub unattributed: Option<Unattributed>,
    /// Without a card: the cards of the catalogue that would do, by memory.
    pub fits_on: Vec<FitsOn>,
    /// In a world of several ranks: those that ran. The rest of this is about the worst of them.
    pub ranks: Option<Ranks>,
    /// Decisions of the script on values that nobody knows: something was assumed instead.
    pub decisions: Vec<Decision>,
    /// The same run with the most that such values can give, if it was tried.
    pub most: Option<Most>,
    /// Decisions by weights of the first step that stand for those of later steps.
    pub modelled: Vec<Decision>,
    /// What a shortened training showed of what comes after the first steps, if there was to be one.
    pub whole: Option<Whole>,
    /// Commands that go on from here, as they are typed.
    pub next: Vec<String>,
    /// Why the verdict does not say all.
    pub warnings: Vec<String>,
    /// What the reader should know about these numbers.
    pub notes: Vec<String>,
}

impl Run {
    /// Who holds every byte, if that is known.
    pub fn anatomy(&self) -> Option<&anatomy::Anatomy> {
        self.study.as_ref().map(|study| &study.anatomy)
    }

    /// Root causes, the largest first.
    pub fn findings(&self) -> &[diagnose::Finding] {
        self.study.as_ref().map_or(&[], |study| &study.findings)
    }

    /// What is often blamed and is not the cause.
    pub fn suspects(&self) -> &[diagnose::Suspect] {
        self.study.as_ref().map_or(&[], |study| &study.suspects)
    }

    /// How the peak depends on the order of work, if a free waited for another stream.
    pub fn deferred(&self) -> Option<Deferred> {
        self.study.as_ref().and_then(|study| study.deferred)
    }
}
