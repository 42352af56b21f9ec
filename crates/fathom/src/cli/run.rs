//! Flags of commands that run scripts once.

use std::path::PathBuf;

use clap::Args;

use super::{CardArguments, UnfoldArguments};

/// Flags of `fathom run`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Without `--gpu` and `--memory`, memory is unlimited.

Exit codes: 0 fits, 1 does not fit or has grown, 2 bad usage or input, or an output that cannot be written,
3 the script failed for another reason, 4 unfinished: a signal or the timeout ended it first.

Example:
  fathom run --gpu rtx3090 -- python train.py --batch-size 64")]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) card: CardArguments,
    /// Stop after this many optimizer steps; 0 runs the script to its end [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<u64>,
    /// End the script after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Exit with 1 if the run needs more than this, CUDA context included
    #[arg(long, value_name = "SIZE")]
    pub(crate) budget: Option<String>,
    /// Exit with 1 if the run needs more than this baseline (see `--save-baseline`) plus the margin
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Allowed growth over the baseline: `2%`, `64MiB`, `0` [default: 2%]
    #[arg(long, value_name = "MARGIN")]
    pub(crate) margin: Option<String>,
    /// Write what the run needs as a baseline, small enough to commit
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    pub(crate) save_baseline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) outlets: OutletArguments,
    /// Write the report as JSON (`-` for standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as one HTML file, which opens from disk and needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Keep the files of the run in this folder; files of an earlier run are replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// `off`: do not compute values that sizes and branches depend on [default: on]
    #[arg(long, value_name = "on|off")]
    pub(crate) values: Option<String>,
    /// Assume this number where a line reads a value that cannot be known; `least` or `most` for all lines; repeatable
    #[arg(long, value_name = "FILE:LINE=NUMBER")]
    pub(crate) assume: Vec<String>,
    /// `off`: do not record who holds the memory; peaks and verdict only [default: on]
    #[arg(long, value_name = "on|off")]
    pub(crate) record: Option<String>,
    /// `off`: do not repeat the run to find what it needs; `on`: repeat it even where it cannot be kept from writing
    /// files and from the network [default: confined]
    #[arg(long, value_name = "confined|on|off")]
    pub(crate) verify: Option<String>,
    /// `off`: do not run a shortened training to see evaluation, saving and later epochs [default: on]
    #[arg(long, value_name = "on|off")]
    pub(crate) whole: Option<String>,
    /// `shuffle`: run the shortened training with its batches in five other orders, and show the band of peaks
    #[arg(long, value_name = "given|shuffle")]
    pub(crate) batch_order: Option<String>,
    /// Exit with 1 also if the answer is TIGHT, DEPENDS or NOT MEASURED
    #[arg(long)]
    pub(crate) strict: bool,
    /// Ask about this peak, e.g. `batch 16`, `checkpoint encoder.blocks`, `where does the memory go?`; repeatable
    #[arg(long, value_name = "QUESTION")]
    pub(crate) ask: Vec<String>,
    #[command(flatten)]
    pub(crate) world: WorldArguments,
    /// The most ranks that run at the same time [default: as many as there are cores and memory for]
    #[arg(long, help_heading = "More than one GPU", value_name = "N", allow_hyphen_values = true)]
    pub(crate) jobs: Option<String>,
    #[command(flatten)]
    pub(crate) unfold: UnfoldArguments,
    /// Print only the verdict
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Say what is being done
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// The command: `train.py`, `python -m …`, `torchrun …`, a shell script; `--` may stand before it
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Where a gate's answer goes besides the terminal.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OutletArguments {
    /// Write a Markdown table, for a pull request
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write JUnit's XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// Flags of `fathom check`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 every script passes, 1 one does not fit or has grown, 2 bad usage or input, or an output that cannot be
written, 3 one failed for another reason, 4 one is unfinished: a signal or its timeout ended it first.

Example of a `fathom.toml`:
  gpu = \"rtx3090\"

  [[script]]
  name = \"small\"
  command = \"python train.py --config small.yaml\"
  budget = \"16GiB\"
  baseline = \"memory/small.json\"")]
pub(crate) struct CheckArguments {
    /// Names of scripts [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Write new baselines instead of comparing
    #[arg(long)]
    pub(crate) update_baselines: bool,
    #[command(flatten)]
    pub(crate) outlets: OutletArguments,
    /// Write all reports as JSON (`-` for standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// The most scripts that run at the same time [default: as many as there are cores and memory for]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) jobs: Option<String>,
    /// Show what the scripts print; they run one after another then
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Flags about more than one card.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "More than one GPU")]
pub(crate) struct WorldArguments {
    /// Simulate one rank of an N-rank job
    #[arg(long, value_name = "N")]
    pub(crate) world_size: Option<u32>,
    /// Which rank to simulate [default: 0]
    #[arg(long, value_name = "R", conflicts_with = "ranks")]
    pub(crate) rank: Option<u32>,
    /// Simulate several ranks and compare them: `0,1,last`, `0..4`, `all`
    #[arg(long, value_name = "R,R,…")]
    pub(crate) ranks: Option<String>,
    /// GPUs of one machine [default: 8, or the largest number below that divides the ranks]
    #[arg(long, value_name = "G")]
    pub(crate) gpus_per_node: Option<u32>,
    /// Without `--world-size`: how many GPUs the process sees [default: 1], or names of GPUs to compare
    #[arg(long, value_name = "K", conflicts_with = "world_size")]
    pub(crate) gpus: Option<String>,
}
