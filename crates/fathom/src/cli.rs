//! What can be typed.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use report::Unfold;

use crate::texts::TextArguments;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default());

/// Where your GPU memory goes, and whether the run will fit, before any GPU is rented.
#[derive(Debug, Parser)]
#[command(name = "fathom", version, styles = STYLES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a training script, unmodified, on a GPU that is not there
    Run(RunArguments),
    /// Run every script of `fathom.toml` and fail if one is over its budget or has grown
    Check(CheckArguments),
    /// Find what to change so that the script fits a card; every change is tried
    Fit(FitArguments),
    /// Try values of the script's own settings: which fit which card, and the largest that does
    Sweep(SweepArguments),
    /// Say who holds the memory of a recording or a snapshot, and why a message says there was none
    Explain(ExplainArguments),
    /// Compare two runs, commits, settings or snapshots: what grew and what shrank
    Diff(DiffArguments),
    /// Write one HTML file, which needs no network, from recordings, snapshots and reports
    Page(PageArguments),
    /// Replay a memory snapshot or recording: exactly, then under other settings and on other cards
    Replay(ReplayArguments),
    /// List the catalogue of cards, or all that is known about one
    Gpus {
        /// A card, e.g. `rtx3090`
        name: Option<String>,
    },
    /// Check this machine, the Python and its torch, and print the settings in force
    Doctor {
        /// The Python to check, as in `fathom doctor -- .venv/bin/python`
        #[arg(last = true, value_name = "PYTHON")]
        python: Vec<String>,
    },
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page
    Man,
}

/// Flags of `fathom run`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 fits, 1 does not fit or has grown, 2 bad usage or input, 3 the script failed by itself.

Example:
  fathom run --gpu rtx3090 -- python train.py --batch-size 64")]
pub(crate) struct RunArguments {
    /// The card, e.g. `rtx3090`, `a100-80g` (see `fathom gpus`); without one, memory is unlimited
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
    /// Instead of a card: this much memory, e.g. `16GiB`, `24GB`
    #[arg(long, value_name = "SIZE", conflicts_with = "gpu")]
    pub(crate) memory: Option<String>,
    /// Stop after this many optimizer steps; 0 lets the script end by itself [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<u64>,
    /// End the script after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Exit with 1 if the run needs more than this, context included
    #[arg(long, value_name = "SIZE")]
    pub(crate) budget: Option<String>,
    /// Exit with 1 if the run needs more than this baseline, written by `--save-baseline`, and the margin
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Growth that is let through: `2%`, `64MiB`, `0` [default: 2%]
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
    /// Keep the files of the run in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// `off`: do not compute true values of small tensors [default: on]
    #[arg(long, value_name = "on|off")]
    pub(crate) values: Option<String>,
    /// `off`: do not record who holds the memory; peaks and verdict only [default: on]
    #[arg(long, value_name = "on|off")]
    pub(crate) record: Option<String>,
    /// Ask what a remedy could do to this peak, e.g. `empty_cache`, `checkpoint encoder.blocks`; repeatable
    #[arg(long, value_name = "REMEDY")]
    pub(crate) ask: Vec<String>,
    #[command(flatten)]
    pub(crate) world: WorldArguments,
    #[command(flatten)]
    pub(crate) unfold: UnfoldArguments,
    /// Print only the verdict
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Say what is being done
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// The command: python, torchrun, accelerate launch, a shell script …
    #[arg(last = true, required = true, value_name = "COMMAND")]
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
Exit codes: 0 every script passes, 1 one does not fit or has grown, 2 bad usage or input, 3 one failed by itself.

Example of a `fathom.toml`:
  gpu = \"rtx3090\"

  [[script]]
  name = \"small\"
  command = \"python train.py --config small.yaml\"
  budget = \"16GiB\"
  baseline = \"memory/small.json\"")]
pub(crate) struct CheckArguments {
    /// Scripts by name [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Write each script's baseline anew instead of comparing
    #[arg(long)]
    pub(crate) update_baselines: bool,
    #[command(flatten)]
    pub(crate) outlets: OutletArguments,
    /// Write all reports as JSON (`-` for standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Show what the scripts print
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Flags about more than one card.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "More than one card")]
pub(crate) struct WorldArguments {
    /// The script is one rank of so many; only the ranks that are asked for run
    #[arg(long, value_name = "N")]
    pub(crate) world_size: Option<u32>,
    /// Which rank runs [default: 0]
    #[arg(long, value_name = "R", conflicts_with = "ranks")]
    pub(crate) rank: Option<u32>,
    /// Several ranks, one after the other: `0,1,last`, `0..4`, `all`
    #[arg(long, value_name = "R,R,…")]
    pub(crate) ranks: Option<String>,
    /// Cards of one machine [default: 8, or what divides the world]
    #[arg(long, value_name = "G")]
    pub(crate) gpus_per_node: Option<u32>,
    /// Without a world: how many cards one process sees [default: 1]
    #[arg(long, value_name = "K", conflicts_with = "world_size")]
    pub(crate) gpus: Option<u32>,
}

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
    /// Write the answer as JSON (`-` for standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Run every trial, even where its answer is remembered
    #[arg(long)]
    pub(crate) fresh: bool,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The command: python train.py, python -m …
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Flags of `fathom fit`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 it fits, as it is or with a plan, 1 nothing that was tried fits, 2 bad usage or input, 3 the script failed by itself.

Example:
  fathom fit --gpu rtx3090 --vary batch-size=32,16 -- python train.py --batch-size 64")]
pub(crate) struct FitArguments {
    /// The card, e.g. `rtx3090`
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
    /// Instead of a card: this much memory, e.g. `16GiB`
    #[arg(long, value_name = "SIZE", conflicts_with = "gpu")]
    pub(crate) memory: Option<String>,
    /// Try only these levers, e.g. `checkpoint,amp-bf16`
    #[arg(long = "try", value_name = "LEVER,…", value_delimiter = ',')]
    pub(crate) levers: Vec<String>,
    /// `training`: also try what changes the training
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = ["training"])]
    pub(crate) allow: Vec<String>,
    /// Values of a setting of the script's that may be tried, the mildest first: `batch-size=32,16`
    #[arg(long, value_name = "NAME=V,V,…")]
    pub(crate) vary: Vec<String>,
    #[command(flatten)]
    pub(crate) trial: TrialArguments,
}

/// Flags of `fathom sweep`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 the answer was given, 2 bad usage or input, 3 the script failed in every trial.

Examples:
  fathom sweep --vary batch-size=16,32,64 --gpu rtx3090,a100-40g -- python train.py --batch-size 32
  fathom sweep --vary batch=1..512 --set batch='--batch-size {}' --gpu rtx3090 -- python train.py")]
pub(crate) struct SweepArguments {
    /// Values to try: `batch=8,16,32`, or a range whose largest fitting value is searched: `batch=1..512`
    #[arg(long, required = true, value_name = "NAME=V,V,…")]
    pub(crate) vary: Vec<String>,
    /// Cards, e.g. `rtx3090,a100-80g` [default: memories from 8 to 80 GiB]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) gpu: Vec<String>,
    /// Instead of cards: memories, e.g. `16GiB,24GiB`
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', conflicts_with = "gpu")]
    pub(crate) memory: Vec<String>,
    /// Also how each cause of the peak grows with each knob: up to four recorded runs a knob
    #[arg(long)]
    pub(crate) causes: bool,
    #[command(flatten)]
    pub(crate) trial: TrialArguments,
}

/// Flags of `fathom replay`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 the answer was given, 1 the replay differs or does not fit into `--memory`, 2 bad usage or input.

Example:
  fathom replay snapshot.pickle --memory 16GiB --settings expandable_segments:True")]
pub(crate) struct ReplayArguments {
    /// A memory snapshot of PyTorch or a recording of Fathom
    pub(crate) file: PathBuf,
    /// Also try these settings, as in PYTORCH_CUDA_ALLOC_CONF; the verdict is about them then
    #[arg(long, value_name = "CONF")]
    pub(crate) settings: Option<String>,
    /// On a card with this much memory in all, e.g. `16GiB`, `24GB`
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// The device, if the file holds several [default: the one with most events]
    #[arg(long, value_name = "N")]
    pub(crate) device: Option<u32>,
    /// Write the answer as JSON (`-` for standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Flags of `fathom explain`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 the answer was given, 2 bad usage or input.

Examples:
  fathom explain snapshot.pickle --lines
  fathom explain train.log --dims batch=8,heads=16,tokens=4096
  fathom explain train.log -- python train.py
  fathom explain --smi 22616MiB --reserved 21.5GiB --allocated 18.2GiB --gpu a10g")]
pub(crate) struct ExplainArguments {
    /// Recordings of Fathom (`fathom run --out DIR` keeps them), memory snapshots of PyTorch, or texts with an
    /// out-of-memory message or a memory table; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The device, if the file holds several [default: the one with most events]
    #[arg(long, value_name = "N")]
    pub(crate) device: Option<u32>,
    /// Write the answer as JSON (`-` for standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write it as a memory snapshot, which pytorch.org/memory_viz opens
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Ask what a remedy could do to this peak, e.g. `empty_cache`, `checkpoint encoder.blocks`; repeatable
    #[arg(long, value_name = "REMEDY")]
    pub(crate) ask: Vec<String>,
    #[command(flatten)]
    pub(crate) unfold: UnfoldArguments,
    /// Every pool, and a map of every segment
    #[arg(long, help_heading = "Show in full")]
    pub(crate) fragments: bool,
    #[command(flatten)]
    pub(crate) texts: TextArguments,
}

impl ExplainArguments {
    /// What is shown in full.
    pub(crate) fn unfold(&self) -> Unfold {
        let unfold = Unfold::from(self.unfold);
        Unfold { fragments: unfold.fragments || self.fragments, ..unfold }
    }
}

/// Flags of `fathom diff`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 the answer was given, 2 bad usage or input.

Example:
  fathom run --out before -- python train.py
  fathom run --out after  -- python train.py --ema
  fathom diff before after --markdown comment.md")]
pub(crate) struct DiffArguments {
    /// Before: a recording, a memory snapshot, a folder that `fathom run --out` wrote, or a report as JSON
    pub(crate) a: PathBuf,
    /// After
    pub(crate) b: PathBuf,
    /// The device, if a file holds several [default: the one with most events]
    #[arg(long, value_name = "N")]
    pub(crate) device: Option<u32>,
    /// Write the answer as JSON (`-` for standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write it as Markdown, for a pull request
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write both sides and what differs as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Show every row that changed
    #[arg(long)]
    pub(crate) all: bool,
}

/// Flags of `fathom page`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 the page was written, 2 bad usage or input.

Example:
  fathom run --out run -- python train.py && fathom page run -o report.html")]
pub(crate) struct PageArguments {
    /// Recordings, memory snapshots, folders that `fathom run --out` wrote, JSON that `--json` wrote
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Where to write it
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
}

/// What a report shows in full.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Show in full")]
pub(crate) struct UnfoldArguments {
    /// Everything
    #[arg(long)]
    pub(crate) all: bool,
    /// Every cause with its evidence and what may be done
    #[arg(long)]
    pub(crate) findings: bool,
    /// Every row of the ledger, and how it is known
    #[arg(long)]
    pub(crate) ledger: bool,
    /// Every module
    #[arg(long)]
    pub(crate) modules: bool,
    /// Every line of your source
    #[arg(long)]
    pub(crate) lines: bool,
    /// The fifty largest tensors
    #[arg(long)]
    pub(crate) tensors: bool,
    /// Every operator
    #[arg(long)]
    pub(crate) operators: bool,
    /// Every phase of every step
    #[arg(long)]
    pub(crate) phases: bool,
}

impl From<UnfoldArguments> for Unfold {
    fn from(typed: UnfoldArguments) -> Unfold {
        if typed.all {
            return Unfold::all();
        }
        let UnfoldArguments {
            findings, ledger, modules, lines, tensors, operators, phases, ..
        } = typed;
        Unfold { findings, ledger, modules, lines, tensors, operators, phases, ..Unfold::default() }
    }
}
