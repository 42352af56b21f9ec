//! What can be typed.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

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
Exit codes: 0 fits, 1 does not fit, 2 bad usage or input, 3 the script failed by itself.

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
    /// Write the report as JSON (`-` for standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Keep the files of the run in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// `off`: do not compute true values of small tensors [default: on]
    #[arg(long, value_name = "on|off")]
    pub(crate) values: Option<String>,
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
