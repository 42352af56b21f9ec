//! Flags of `fathom report`.

use std::path::PathBuf;

use clap::Args;

use super::TrialArguments;
use crate::shell;

/// Flags of `fathom report`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Beside the document stand MEMORY.json (`fathom.document/1`), MEMORY.html and MEMORY.svg.

Exit codes: 0 the document was written, 2 bad usage or input, or an output that cannot be written, 3 the script failed for
another reason, 4 unfinished: a signal ended it first, and the document has what was known by then.

Examples:
  fathom report --gpu rtx3090 -- python train.py
  fathom report --memory 24GB,16GB,8GB -o MEMORY.md -- python train.py --batch-size 64
  fathom report --compare 'python train.py --model small' -- python train.py --model large")]
pub(crate) struct ReportArguments {
    /// The GPU that the document is about, e.g. `rtx3090`; of several the first, and settings for each
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) gpu: Vec<String>,
    /// The same by memory, e.g. `24GB,16GB,8GB`; with one `--gpu`, that GPU with other memories
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',')]
    pub(crate) memory: Vec<String>,
    /// What the desktop or other programs hold of each already, e.g. `2GiB`, `10%`
    #[arg(long, value_name = "SIZE")]
    pub(crate) used: Option<String>,
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
        if !self.gpu.is_empty() {
            flag("--gpu", self.gpu.join(","));
        }
        if !self.memory.is_empty() {
            flag("--memory", self.memory.join(","));
        }
        self.used.iter().for_each(|used| flag("--used", used.clone()));
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
