//! What can be typed.

mod command;
mod files;
mod report;
mod run;
mod trials;

use std::path::PathBuf;

use ::report::Unfold;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::command::complete;
pub(crate) use self::files::{
    DiffArguments, ExplainArguments, PageArguments, ReplayArguments, ViewerArguments,
};
pub(crate) use self::report::ReportArguments;
pub(crate) use self::run::{CheckArguments, OutletArguments, RunArguments, WorldArguments};
pub(crate) use self::trials::{FitArguments, SweepArguments, TrialArguments};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default());

/// Where your GPU memory goes, and whether the run will fit, before any GPU is rented.
#[derive(Debug, Parser)]
#[command(name = "fathom", version, styles = STYLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Command {
    /// With each script's Python in front of it.
    pub(crate) fn completed(mut self) -> Command {
        let words = match &mut self {
            Command::Run(arguments) => &mut arguments.command,
            Command::Fit(arguments) => &mut arguments.trial.command,
            Command::Report(arguments) => &mut arguments.trial.command,
            Command::Sweep(arguments) => &mut arguments.trial.command,
            _ => return self,
        };
        *words = complete(std::mem::take(words));
        self
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a training script, unmodified, on a phantom GPU
    Run(Box<RunArguments>),
    /// Run every script of `fathom.toml` and fail if one is over its budget or has grown
    Check(CheckArguments),
    /// Write a document: why the script needs its memory, what was tried, and what to change, all measured
    Report(ReportArguments),
    /// Find what to change so that the script fits on a GPU; every change is tested
    Fit(FitArguments),
    /// Test values of the script's settings: which fit on which GPU, and the largest that fits
    Sweep(SweepArguments),
    /// Explain a recording, a snapshot or an out-of-memory message
    Explain(ExplainArguments),
    /// Compare two runs, commits, settings or snapshots: what grew and what shrank
    Diff(DiffArguments),
    /// Write one HTML page, which needs no network, from recordings, snapshots and reports
    Page(PageArguments),
    /// Write one HTML file that does the same in a browser, for people without Fathom
    Viewer(ViewerArguments),
    /// Replay a memory snapshot or recording, then try other allocator settings and GPU sizes
    Replay(ReplayArguments),
    /// List the known GPUs, or all that is known about one
    Gpus {
        /// A card, e.g. `rtx3090`
        name: Option<String>,
    },
    /// Measure on a real GPU what it shows beside PyTorch's memory, as rows for the catalogue
    Calibrate {
        /// Write the rows to a file
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// The Python to measure with, as in `fathom calibrate -- .venv/bin/python`
        #[arg(trailing_var_arg = true, value_name = "PYTHON")]
        python: Vec<String>,
    },
    /// Check this machine, the Python and its torch, and print the settings
    Doctor {
        /// The Python to check, as in `fathom doctor -- .venv/bin/python`
        #[arg(trailing_var_arg = true, value_name = "PYTHON")]
        python: Vec<String>,
    },
    /// Serve these commands to coding agents, by the Model Context Protocol on standard input and output
    Mcp,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page
    Man,
}

/// Which card is meant; `card.rs` understands it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct CardArguments {
    /// The GPU, e.g. `rtx3090`, `a100-80g` (see `fathom gpus`); `fathom run` compares several: `rtx3090,a100-40g`, `all`
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
    /// The memory of the GPU, e.g. `20GiB` for a slice of it, or `16GB` as it is sold; without `--gpu`, any GPU
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// What the desktop or other programs use of it already, e.g. `2GiB`, `10%`
    #[arg(long, value_name = "SIZE")]
    pub(crate) used: Option<String>,
}

/// Which cards are meant where several can be; `cards.rs` understands them.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CardsArguments {
    /// GPUs, e.g. `rtx3090,a100-80g`
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) gpu: Vec<String>,
    /// Memory sizes, e.g. `16GiB,24GiB`, of any GPU, or of the one that `--gpu` names
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',')]
    pub(crate) memory: Vec<String>,
    /// What the desktop or other programs hold of each already, e.g. `2GiB`, `10%`
    #[arg(long, value_name = "SIZE")]
    pub(crate) used: Option<String>,
}

/// What a report shows in full.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Show in full")]
pub(crate) struct UnfoldArguments {
    /// Every section of the report; long ones are cut, and the flags below show them in full
    #[arg(long)]
    pub(crate) all: bool,
    /// Every cause with its evidence and its remedies
    #[arg(long)]
    pub(crate) findings: bool,
    /// What holds the memory, by category
    #[arg(long)]
    pub(crate) held: bool,
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
        let UnfoldArguments {
            all,
            findings,
            held,
            ledger,
            modules,
            lines,
            tensors,
            operators,
            phases,
        } = typed;
        let fragments = false;
        Unfold {
            all,
            findings,
            held,
            ledger,
            modules,
            lines,
            tensors,
            operators,
            phases,
            fragments,
        }
    }
}
