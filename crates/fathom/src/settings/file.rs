//! `fathom.toml`: where it is found, and what may stand in it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use toml::Table;

use crate::error::Hinted;
use crate::scripts::Script;

/// `fathom.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(super) gpu: Option<String>,
    pub(super) memory: Option<String>,
    pub(super) used: Option<String>,
    pub(super) steps: Option<u64>,
    pub(super) timeout: Option<u64>,
    pub(super) budget: Option<String>,
    pub(super) values: Option<String>,
    pub(super) record: Option<String>,
    pub(super) verify: Option<String>,
    pub(super) whole: Option<String>,
    pub(super) baseline: Option<PathBuf>,
    pub(super) margin: Option<String>,
    pub(super) jobs: Option<u64>,
    /// What `fathom check` runs.
    #[serde(default)]
    pub(crate) script: Vec<Script>,
    // Flags of one command.
    run: Option<Table>,
    check: Option<Table>,
    report: Option<Table>,
    fit: Option<Table>,
    sweep: Option<Table>,
    explain: Option<Table>,
    diff: Option<Table>,
    page: Option<Table>,
    viewer: Option<Table>,
    replay: Option<Table>,
    calibrate: Option<Table>,
}

impl File {
    /// What is set for one command alone.
    pub(super) fn table(&self, command: &str) -> Option<&Table> {
        let table = match command {
            "run" => &self.run,
            "check" => &self.check,
            "report" => &self.report,
            "fit" => &self.fit,
            "sweep" => &self.sweep,
            "explain" => &self.explain,
            "diff" => &self.diff,
            "page" => &self.page,
            "viewer" => &self.viewer,
            "replay" => &self.replay,
            "calibrate" => &self.calibrate,
            _ => return None,
        };
        table.as_ref()
    }
}

/// The nearest `fathom.toml` at or above a folder.
pub(crate) fn find_file(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|folder| folder.join("fathom.toml")).find(|path| path.is_file())
}

/// Reads a `fathom.toml`.
pub(crate) fn read_file(path: &Path) -> Result<File> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read `{}`", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        Hinted::error(
            format!("`{}` is not valid: {}", path.display(), error.to_string().trim()),
            "known keys: gpu, memory, used, steps, timeout, budget, values, record, verify, whole, baseline, margin, jobs; [[script]] with name and command; flags of one command below its name, as page below [run]",
        )
    })
}
