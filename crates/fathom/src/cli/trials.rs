//! Flags of commands that make many trials.

use std::path::PathBuf;

use clap::Args;

use super::{CardArguments, CardsArguments};

/// Flags that trials share.
#[derive(Debug, Default, Args)]
pub(crate) struct TrialArguments {
    /// How a setting is given: `--set batch='--batch-size {}'`, `key={}`, `NAME={}`, `config.yaml:key={}`
    #[arg(long = "set", value_name = "NAME=TEMPLATE")]
    pub(crate) templates: Vec<String>,
    /// Optimizer steps of each trial [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<u64>,
    /// End a trial after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Assume a value that cannot be known: `train.py:88=1200` for a line, `least` or `most` for all lines
    #[arg(long, value_name = "FILE:LINE=NUMBER")]
    pub(crate) assume: Vec<String>,
    /// Each trial simulates rank 0 of an N-rank job
    #[arg(long, value_name = "N")]
    pub(crate) world_size: Option<u32>,
    /// The most trials that run at the same time [default: as many as there are cores and memory for]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) jobs: Option<String>,
    /// Write the answer as JSON (`-` for standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Run every trial, even if its answer is cached
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Do not show progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The command: `train.py`, `python -m …`; `--` may stand before it
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Flags of `fathom fit`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 it fits, as it is or with a plan, 1 nothing that was tried fits, 2 bad usage or input, or an output that
cannot be written, 3 the script failed for another reason, 4 unfinished: a signal ended the search first.

Example:
  fathom fit --gpu rtx3090 --vary batch-size=32,16 -- python train.py --batch-size 64")]
pub(crate) struct FitArguments {
    #[command(flatten)]
    pub(crate) card: CardArguments,
    /// Try only these levers, e.g. `checkpoint,amp-bf16`
    #[arg(long = "try", value_name = "LEVER,…", value_delimiter = ',')]
    pub(crate) levers: Vec<String>,
    /// `training`: also try what changes the training
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = ["training"])]
    pub(crate) allow: Vec<String>,
    /// Memory to leave free, as a share or a size [default: 3%]
    #[arg(long, value_name = "SIZE")]
    pub(crate) headroom: Option<String>,
    /// Apply the patch of the chosen plan to your files
    #[arg(long)]
    pub(crate) write: bool,
    /// Values that may be tried for a setting of the script, the mildest first: `batch-size=32,16`
    #[arg(long, value_name = "NAME=V,V,…")]
    pub(crate) vary: Vec<String>,
    /// Write the plans as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trial: TrialArguments,
}

/// Flags of `fathom sweep`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Without `--gpu` and `--memory`: any GPU, with memories from 8 to 80 GiB.

Exit codes: 0 the answer was given, 2 bad usage or input, or an output that cannot be written, 3 the script failed in
every trial, 4 unfinished: a signal ended the sweep first.

Examples:
  fathom sweep --vary batch-size=16,32,64 --gpu rtx3090,a100-40g -- python train.py --batch-size 32
  fathom sweep --vary batch=1..512 --set batch='--batch-size {}' --gpu rtx3090 -- python train.py
  fathom sweep --vary world-size=8,16,64 --gpu a100-40g -- python fsdp.py
  fathom sweep --vary strategy=ddp,fsdp2 --set strategy='--strategy {}' --world-size 8 -- python train.py")]
pub(crate) struct SweepArguments {
    /// Values to try: `batch=8,16,32`, or a range whose largest fitting value is searched: `batch=1..512`
    #[arg(long, required = true, value_name = "NAME=V,V,…")]
    pub(crate) vary: Vec<String>,
    #[command(flatten)]
    pub(crate) cards: CardsArguments,
    /// Run only part K of N, for jobs that share a cache, and show what all jobs have so far: `2/4`
    #[arg(long, value_name = "K/N", allow_hyphen_values = true)]
    pub(crate) shard: Option<String>,
    /// Also show how each cause of the peak grows with each setting: up to four recorded runs for each
    #[arg(long)]
    pub(crate) causes: bool,
    /// Write the answer as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trial: TrialArguments,
}
