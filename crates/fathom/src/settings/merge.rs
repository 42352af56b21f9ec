//! One setting from several places: a flag wins over the environment, that over `fathom.toml`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use contract::environment as name;

use super::file::File;
use super::{DEFAULT_STEPS, Typed};
use crate::card::Meant;
use crate::cli::CardArguments;
use crate::error::Hinted;
use crate::jobs;

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag,
    Environment,
    File(PathBuf),
    Default,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Flag => write!(formatter, "flag"),
            Origin::Environment => write!(formatter, "environment"),
            Origin::File(path) => write!(formatter, "{}", path.display()),
            Origin::Default => write!(formatter, "default"),
        }
    }
}

/// Puts settings together, and notes where each comes from.
pub(super) struct Merge {
    /// The `fathom.toml`.
    pub(super) path: PathBuf,
    pub(super) origins: Vec<(&'static str, String, Origin)>,
}

impl Merge {
    pub(super) fn text(
        &mut self,
        key: &'static str,
        flag: Option<String>,
        variable: &str,
        file: Option<String>,
    ) -> Option<String> {
        let environment = std::env::var(variable).ok().filter(|text| !text.is_empty());
        let (value, origin) = if flag.is_some() {
            (flag, Origin::Flag)
        } else if environment.is_some() {
            (environment, Origin::Environment)
        } else if file.is_some() {
            (file, Origin::File(self.path.clone()))
        } else {
            (None, Origin::Default)
        };
        let default = match key {
            "gpu" => "none: unlimited memory".to_owned(),
            "steps" => DEFAULT_STEPS.to_string(),
            "values" | "record" | "whole" => "on".to_owned(),
            "verify" => "confined".to_owned(),
            "jobs" => format!("{}: as many as there are cores", jobs::cores()),
            "margin" => gate::DEFAULT_MARGIN.to_string(),
            _ => "–".to_owned(),
        };
        self.origins.push((key, value.clone().unwrap_or(default), origin));
        value
    }

    pub(super) fn number(
        &mut self,
        key: &'static str,
        flag: Option<u64>,
        variable: &str,
        file: Option<u64>,
    ) -> Result<Option<u64>> {
        let text = |value: Option<u64>| value.map(|value| value.to_string());
        let value = self.text(key, text(flag), variable, text(file));
        value
            .map(|text| {
                let number = text.trim().parse::<u64>();
                number.map_err(|_| {
                    Hinted::error(format!("`{key}` is `{text}`"), "write a whole number")
                })
            })
            .transpose()
    }

    /// A file named in `fathom.toml` lies beside it.
    pub(super) fn baseline(&mut self, flags: &Typed, file: &File) -> Option<PathBuf> {
        let folder = self.path.parent().map(Path::to_owned).unwrap_or_default();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let flag = flags.baseline.as_deref().map(text);
        let of_file = file.baseline.as_ref().map(|path| text(&folder.join(path)));
        self.text("baseline", flag, name::BASELINE, of_file).map(PathBuf::from)
    }

    /// The card. A name at a stronger place brings its own memory along: what a weaker place says about
    /// the memory was said of another card.
    pub(super) fn card(&mut self, flags: &Typed, file: &File) -> Result<Option<Meant>> {
        let gpu = self.text("gpu", flags.card.gpu.clone(), name::GPU, file.gpu.clone());
        let memory =
            self.text("memory", flags.card.memory.clone(), name::MEMORY, file.memory.clone());
        let used = self.text("used", flags.card.used.clone(), name::USED, file.used.clone());
        let is_of_another = gpu.is_some() && self.strength("memory") < self.strength("gpu");
        let memory = memory.filter(|_| !is_of_another);
        CardArguments { gpu, memory, used }.meant()
    }

    fn strength(&self, key: &str) -> u8 {
        match self.origins.iter().find(|row| row.0 == key).map(|row| &row.2) {
            Some(Origin::Flag) => 3,
            Some(Origin::Environment) => 2,
            Some(Origin::File(_)) => 1,
            _ => 0,
        }
    }
}
