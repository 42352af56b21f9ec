//! What a client passes to each tool. The comments are what an agent reads.

use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::card::size;
use crate::jobs;

/// Seconds of a call, unless the client says otherwise, and at most.
const SECONDS: u64 = 900;
const MOST_SECONDS: u64 = 4 * 3600;

/// What a call may take.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Limits {
    /// End the call after this many seconds [default: 900, at most 14400]
    pub(super) limit_seconds: Option<u64>,
    /// End the call when its processes hold more of the host's memory than this, e.g. `8GiB` [default: what is available]
    pub(super) limit_host_memory: Option<String>,
}

impl Limits {
    pub(super) fn seconds(&self) -> f64 {
        self.limit_seconds.unwrap_or(SECONDS).min(MOST_SECONDS) as f64
    }

    pub(super) fn host_memory_bytes(&self) -> anyhow::Result<u64> {
        match &self.limit_host_memory {
            Some(text) => size("limit_host_memory", text),
            None => Ok(jobs::available().unwrap_or(u64::MAX)),
        }
    }
}

/// A training script, and where it runs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Script {
    /// The command as words, e.g. `["python", "train.py", "--batch-size", "8"]`. It is started without a shell, in `folder`
    pub(super) command: Vec<String>,
    /// The folder that it runs in: an absolute path
    pub(super) folder: String,
    #[serde(flatten)]
    pub(super) limits: Limits,
}

/// The GPU that is meant.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct Card {
    /// The GPU, e.g. `rtx3090`; the tool `gpus` lists names. Without it memory is unlimited
    pub(super) gpu: Option<String>,
    /// Another size of its memory, e.g. `20GiB`; without `gpu`, of any GPU
    pub(super) memory: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct RunInput {
    #[serde(flatten)]
    pub(super) script: Script,
    #[serde(flatten)]
    pub(super) card: Card,
    /// Optimizer steps to run [default: 3]
    pub(super) steps: Option<u64>,
    /// The script is one rank of a job of so many
    pub(super) world_size: Option<u32>,
    /// `true`: one run alone, without the runs that find its need and show evaluation: a third of the time
    #[serde(default)]
    pub(super) quick: bool,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct AskInput {
    #[serde(flatten)]
    pub(super) script: Script,
    #[serde(flatten)]
    pub(super) card: Card,
    /// Questions in plain words: `batch 16`, `checkpoint encoder.layers`, `don't use amp`, `where does the memory go?`
    pub(super) questions: Vec<String>,
    /// `false`: answer by the run alone, and try nothing [default: true]
    pub(super) try_changes: Option<bool>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct FitInput {
    #[serde(flatten)]
    pub(super) script: Script,
    #[serde(flatten)]
    pub(super) card: Card,
    /// Try only these levers, e.g. `["checkpoint", "amp-bf16"]`
    #[serde(default)]
    pub(super) levers: Vec<String>,
    /// Settings of the script's that may change, with values, the mildest first: `["batch-size=32,16"]`
    #[serde(default)]
    pub(super) vary: Vec<String>,
    /// `true`: also try what changes the training: another optimizer, frozen parts
    #[serde(default)]
    pub(super) allow_training: bool,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct SweepInput {
    #[serde(flatten)]
    pub(super) script: Script,
    /// GPUs, e.g. `["rtx3090", "a100-40g"]`
    #[serde(default)]
    pub(super) gpus: Vec<String>,
    /// Sizes of memory, e.g. `["16GiB", "24GiB"]`
    #[serde(default)]
    pub(super) memories: Vec<String>,
    /// Settings of the script's and their values, `["batch-size=8,16,32"]`, or a range whose largest fitting value is
    /// searched: `["batch-size=1..512"]`
    pub(super) vary: Vec<String>,
    /// How a setting is given that is no flag in the command: `["batch=--batch-size {}"]`
    #[serde(default)]
    pub(super) set: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct ReportInput {
    #[serde(flatten)]
    pub(super) script: Script,
    #[serde(flatten)]
    pub(super) card: Card,
    /// Where the document is written, in `folder`, e.g. `MEMORY.md`; without it, it is only given back
    pub(super) output: Option<String>,
    /// Another command as one text, to compare with
    pub(super) compare: Option<String>,
    /// Settings to run besides those that are found: `["batch-size=32,64"]`
    #[serde(default)]
    pub(super) vary: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct ExplainInput {
    /// The folder that the file is in, or any: an absolute path
    pub(super) folder: String,
    /// A memory snapshot of PyTorch, a recording of Fathom, or a log with an out-of-memory message
    pub(super) file: Option<String>,
    /// Instead of a file: the out-of-memory message itself
    pub(super) text: Option<String>,
    /// Questions about a recording or a snapshot; nothing is tried
    #[serde(default)]
    pub(super) questions: Vec<String>,
    #[serde(flatten)]
    pub(super) limits: Limits,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct DiffInput {
    /// The folder that the files are in: an absolute path
    pub(super) folder: String,
    /// A folder of `fathom run --out`, a recording, a snapshot or a report: before
    pub(super) a: String,
    /// And after
    pub(super) b: String,
    #[serde(flatten)]
    pub(super) limits: Limits,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct GpusInput {
    /// Only GPUs whose name or title contains this
    pub(super) name: Option<String>,
}
