//! Flags of commands that read files.

use std::path::PathBuf;

use clap::Args;
use report::Unfold;

use super::{CardArguments, UnfoldArguments};
use crate::oom::TextArguments;

/// Which device of a file is meant, and where the answer goes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FileArguments {
    /// The device, if the file holds several [default: the one with most events]
    #[arg(long, value_name = "N")]
    pub(crate) device: Option<u32>,
    /// Write the answer as JSON (`-` for standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Flags of `fathom replay`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 the answer was given, 1 the replay differs or does not fit the card, 2 bad usage or input, or an output that cannot be written.

Example:
  fathom replay snapshot.pickle --memory 16GiB --settings expandable_segments:True")]
pub(crate) struct ReplayArguments {
    /// A memory snapshot of PyTorch or a recording of Fathom
    pub(crate) file: PathBuf,
    /// Also try these settings, as in PYTORCH_CUDA_ALLOC_CONF; the verdict is then about them
    #[arg(long, value_name = "CONF")]
    pub(crate) settings: Option<String>,
    #[command(flatten)]
    pub(crate) card: CardArguments,
    #[command(flatten)]
    pub(crate) source: FileArguments,
}

/// Flags of `fathom explain`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 the answer was given, 2 bad usage or input, or an output that cannot be written.

Examples:
  fathom explain snapshot.pickle --lines
  fathom explain rank*.pickle
  fathom explain train.log --dims batch=8,heads=16,tokens=4096
  fathom explain train.log -- python train.py
  fathom explain --smi 22616MiB --reserved 21.5GiB --allocated 18.2GiB --gpu a10g")]
pub(crate) struct ExplainArguments {
    /// Recordings of Fathom (`fathom run --out DIR` keeps them), memory snapshots of PyTorch, or texts with an
    /// out-of-memory message or a memory table; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) source: FileArguments,
    /// Write the recordings as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Write it as a memory snapshot, which pytorch.org/memory_viz opens
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Ask about this peak, e.g. `batch 16`, `checkpoint encoder.blocks`, `where does the memory go?`; repeatable
    #[arg(long, value_name = "QUESTION")]
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
        Unfold { fragments: self.fragments, ..Unfold::from(self.unfold) }
    }
}

/// Flags of `fathom diff`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 the answer was given, 2 bad usage or input, or an output that cannot be written.

Example:
  fathom run --out before -- python train.py
  fathom run --out after  -- python train.py --ema
  fathom diff before after --markdown comment.md
  fathom diff rank*.pickle")]
pub(crate) struct DiffArguments {
    /// Before: a recording, a memory snapshot, a folder that `fathom run --out` wrote, or a report as JSON
    pub(crate) a: PathBuf,
    /// After
    pub(crate) b: PathBuf,
    /// More ranks of the same run: all are listed, and the one that needs least is compared with the one that needs most
    #[arg(value_name = "MORE")]
    pub(crate) more: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) source: FileArguments,
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
Exit codes: 0 the page was written, 2 bad usage or input, or an output that cannot be written.

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

/// Flags of `fathom viewer`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Exit codes: 0 the viewer was written, 2 it is not installed, or the file cannot be written.

Example:
  fathom viewer -o viewer.html")]
pub(crate) struct ViewerArguments {
    /// Where to write it
    #[arg(short, long, value_name = "FILE", default_value = "viewer.html")]
    pub(crate) output: PathBuf,
}
