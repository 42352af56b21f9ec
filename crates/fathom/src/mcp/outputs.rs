//! What each tool gives back: small, with how each number is known. The comments are what an agent reads.

use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;

/// Bytes, and how they are known.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Number {
    pub(super) bytes: u64,
    /// The same for people: `1.50 GiB`
    pub(super) shown: String,
    /// `measured` by PyTorch's own allocator in a run; `derived` from such a run; `modelled`; `assumed`; `unknown`
    pub(super) known: &'static str,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Peak {
    /// What tensors take: `torch.cuda.max_memory_allocated`
    pub(super) allocated: Number,
    /// What PyTorch holds of the GPU
    pub(super) reserved: Number,
    /// What nvidia-smi would show: all processes, and the CUDA context, which is not PyTorch's
    pub(super) device: Number,
    /// forward, backward, optimizer, evaluation …
    pub(super) phase: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Cause {
    pub(super) title: String,
    /// Bytes of the peak that it explains; causes that are counted add up to no more than the peak
    pub(super) size: Number,
    pub(super) counted: bool,
    pub(super) explanation: String,
    pub(super) grows_with: String,
    /// File and line of the largest of its tensors
    pub(super) line: Option<String>,
    /// What may help, not tried: each with how far it changes results
    pub(super) remedies: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Share {
    pub(super) name: String,
    pub(super) size: Number,
}

/// An answer to a question.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Answered {
    pub(super) question: String,
    /// `none`: does not lower the peak; `worse`: raises it; `lowers`: it was tried; `at_most`: lowers it by no more than
    /// `at_most`; `fact`: no change was asked for; `unknown`: nothing is guessed, and `why` says which command tells
    pub(super) effect: String,
    /// `measured`, `derived` from the run, `unknown`
    pub(super) known: String,
    pub(super) at_most: Option<Number>,
    /// The allocated peak of a trial: without and with the change
    pub(super) before: Option<Number>,
    pub(super) after: Option<Number>,
    /// How far the change alters results
    pub(super) changes_results: Option<String>,
    pub(super) why: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct RunOutput {
    /// The first line of the report
    pub(super) headline: String,
    /// fits, tight, needs, depends, does_not_fit, script_failed, interrupted, timed_out, not_measured
    pub(super) judgement: String,
    pub(super) gpu: Option<String>,
    pub(super) peak: Option<Peak>,
    /// The smallest GPU on which it goes through, context included
    pub(super) need: Option<Number>,
    /// If it does not fit: what it would need
    pub(super) would_need: Option<Number>,
    pub(super) causes: Vec<Cause>,
    /// By category, the largest first
    pub(super) categories: Vec<Share>,
    /// By line of the user's source, the largest first
    pub(super) lines: Vec<Share>,
    /// Often blamed, and not the cause here
    pub(super) not_the_cause: Vec<Share>,
    pub(super) answers: Vec<Answered>,
    pub(super) fits_on: Vec<String>,
    /// Why the script failed, if it did
    pub(super) failure: Option<String>,
    /// The end of what it printed, if it failed
    pub(super) printed: Option<String>,
    /// Commands that go on from here
    pub(super) next: Vec<String>,
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct AskOutput {
    pub(super) headline: String,
    pub(super) answers: Vec<Answered>,
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Plan {
    pub(super) levers: Vec<String>,
    pub(super) verdict: String,
    /// How far it changes results
    pub(super) label: String,
    pub(super) device: Number,
    /// Time of a step beside the script as it is; modelled
    pub(super) cost_ratio: Option<f64>,
    /// The change as a patch
    pub(super) patch: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct FitOutput {
    pub(super) gpu: String,
    /// As it is: fits, does_not_fit …
    pub(super) as_it_is: String,
    pub(super) device_as_it_is: Number,
    /// The plan that changes least of those that fit
    pub(super) chosen: Option<Plan>,
    /// Others that were tried, in the order in which they would be chosen
    pub(super) other_plans: Vec<Plan>,
    pub(super) not_applicable: Vec<String>,
    pub(super) trials: u64,
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Point {
    /// `batch-size=16`
    pub(super) values: String,
    pub(super) gpu: String,
    pub(super) verdict: String,
    pub(super) device: Number,
    pub(super) allocated: Number,
    pub(super) failure: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct SweepOutput {
    pub(super) points: Vec<Point>,
    /// The largest value that fits, by GPU
    pub(super) largest: Vec<String>,
    /// How the peak grows with each setting
    pub(super) scaling: Vec<String>,
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct ReportOutput {
    /// The file that was written, if one was asked for
    pub(super) written: Option<String>,
    /// The document, Markdown
    pub(super) document: String,
    /// Whether something ended the report before its end
    pub(super) unfinished: bool,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct ExplainOutput {
    /// What the file or the message says, in words
    pub(super) explanation: String,
    pub(super) causes: Vec<Cause>,
    pub(super) categories: Vec<Share>,
    pub(super) lines: Vec<Share>,
    pub(super) answers: Vec<Answered>,
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Delta {
    pub(super) name: String,
    pub(super) before: u64,
    pub(super) after: u64,
    pub(super) delta: i64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct DiffOutput {
    /// In one sentence
    pub(super) answer: String,
    /// Of the allocated peak; the rows of each list below sum to it, but those that are left out
    pub(super) peak_delta_bytes: i64,
    pub(super) reserved_delta_bytes: i64,
    pub(super) known: &'static str,
    pub(super) categories: Vec<Delta>,
    pub(super) modules: Vec<Delta>,
    pub(super) lines: Vec<Delta>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Gpu {
    pub(super) name: String,
    pub(super) title: String,
    /// What the GPU has, as the catalogue's sources say
    pub(super) memory_bytes: u64,
    /// What a process can allocate beside its CUDA context
    pub(super) usable_bytes: u64,
    /// `measured` or `assumed`: the size of the context
    pub(super) context_known: &'static str,
    pub(super) compute_capability: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct GpusOutput {
    pub(super) gpus: Vec<Gpu>,
}
