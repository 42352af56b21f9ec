//! Flags of `fathom report`.

use std::path::PathBuf;

use clap::Args;

use super::{CardsArguments, TrialArguments};
use crate::shell;

/// Flags of `fathom report`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
The document is about the first of several GPUs, and has settings for each.
Beside the document stand MEMORY.json (`fathom.document/1`), MEMORY.html and MEMORY.svg.

Exit codes: 0 the document was written, 2 bad usage or input, or an output that cannot be written, 3 the script failed for
another reason, 4 unfinished: a signal ended it first, and the document has what was known by then.

Examples:
  fathom report --gpu rtx3090 -- python train.py
  fathom report --memory 24GB,16GB,8GB -o MEMORY.md -- python train.py --batch-size 64
  fathom report --compare 'python train.py --model small' -- python train.py --model large")]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    pub(crate) cards: CardsArguments,
    /// Another command, as one text: why does the one need more than the other?
    #[arg(long, value_name = "COMMAND")]
    pub(crate) compare: Option<String>,
    /// Values of a setting of the script's to run, besides what is found: `batch-size=32,64`
    #[arg(long, value_name = "NAME=V,V,…")]
    pub(crate) vary: Vec<String>,
    /// Where to write it; without this, `MEMORY.md`, unless that is a file of yours
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trial: TrialArguments,
}

impl ReportArguments {
    /// The command of `fathom` that makes the same document.
    pub(crate) fn shown(&self) -> String {
        let mut words = vec!["fathom".to_owned(), "report".to_owned()];
        let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
        let CardsArguments { gpu, memory, used } = &self.cards;
        if !gpu.is_empty() {
            flag("--gpu", gpu.join(","));
        }
        if !memory.is_empty() {
            flag("--memory", memory.join(","));
        }
        used.iter().for_each(|used| flag("--used", used.clone()));
        self.compare.iter().for_each(|command| flag("--compare", command.clone()));
        self.vary.iter().for_each(|vary| flag("--vary", vary.clone()));
        self.trial.templates.iter().for_each(|set| flag("--set", set.clone()));
        self.trial.steps.iter().for_each(|steps| flag("--steps", steps.to_string()));
        self.output.iter().for_each(|path| flag("-o", path.display().to_string()));
        words.push("--".to_owned());
        words.extend(self.trial.command.iter().cloned());
        shell::line(words.iter().map(String::as_str))
    }
}
