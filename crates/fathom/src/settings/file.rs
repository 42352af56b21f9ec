//! `fathom.toml`: where it is found, and what may stand in it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

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
            "known keys: gpu, memory, used, steps, timeout, budget, values, record, verify, whole, baseline, margin, jobs, and [[script]] with name and command",
        )
    })
}
