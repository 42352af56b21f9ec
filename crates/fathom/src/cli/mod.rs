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
    /// Run a training script, unmodified, on a GPU that is not there
    Run(Box<RunArguments>),
    /// Run every script of `fathom.toml` and fail if one is over its budget or has grown
    Check(CheckArguments),
    /// Write a document: why the script needs its memory, what was tried, and what to change, all measured
    Report(ReportArguments),
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
    /// Write one HTML file that does the same in a browser, for people without Fathom
    Viewer(ViewerArguments),
    /// Replay a memory snapshot or recording: exactly, then under other settings and on other cards
    Replay(ReplayArguments),
    /// List the catalogue of cards, or all that is known about one
    Gpus {
        /// A card, e.g. `rtx3090`
        name: Option<String>,
    },
    /// Measure, on a machine that has a GPU, what it shows beside PyTorch's memory: rows for the catalogue
    Calibrate {
        /// Write the rows to a file
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// The Python to measure with, as in `fathom calibrate -- .venv/bin/python`
        #[arg(trailing_var_arg = true, value_name = "PYTHON")]
        python: Vec<String>,
    },
    /// Check this machine, the Python and its torch, and print the settings in force
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
    /// The card, e.g. `rtx3090`, `a100-80g` (see `fathom gpus`); `fathom run` compares several: `rtx3090,a100-40g`, `all`
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
    /// All memory of the card, e.g. `20GiB` for a slice of it, or `16GB` as a card is sold; without `--gpu`, any card
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// What the desktop or other programs hold of it already, e.g. `2GiB`, `10%`
    #[arg(long, value_name = "SIZE")]
    pub(crate) used: Option<String>,
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
