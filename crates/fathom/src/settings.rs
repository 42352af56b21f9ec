//! What is in force and where it comes from: flags, then the environment, then `fathom.toml`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use contract::environment as name;
use contract::status::MAX_DEVICES;
use gate::Margin;
use gpus::Card;
use serde::Deserialize;

use crate::card::{Meant, Said, size};
use crate::cli::RunArguments;
use crate::error::Hinted;
use crate::scripts::Script;
use crate::world::Place;

/// Steps of a run unless told otherwise: the first step is not typical, the third is.
const DEFAULT_STEPS: u64 = 3;

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

/// What is on unless it is switched off.
fn switch(name: &str, value: Option<&str>) -> Result<bool> {
    match value {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(Hinted::error(format!("`{name}` is `{other}`"), "write `on` or `off`")),
    }
}

/// `fathom.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    gpu: Option<String>,
    memory: Option<String>,
    used: Option<String>,
    steps: Option<u64>,
    timeout: Option<u64>,
    budget: Option<String>,
    values: Option<String>,
    record: Option<String>,
    baseline: Option<PathBuf>,
    margin: Option<String>,
    /// What `fathom check` runs.
    #[serde(default)]
    pub(crate) script: Vec<Script>,
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `None`: unlimited memory.
    pub(crate) card: Option<Card>,
    pub(crate) steps: u64,
    pub(crate) timeout: Option<u64>,
    pub(crate) budget: Option<u64>,
    pub(crate) values: bool,
    /// What is assumed where nobody knows, as `FATHOM_ASSUME` has it.
    pub(crate) assume: Vec<String>,
    pub(crate) record: bool,
    /// Whether the recording is wanted after the report: by a page, or by a plan.
    pub(crate) keeps_source: bool,
    /// The baseline to compare with.
    pub(crate) baseline: Option<PathBuf>,
    /// Growth that is let through.
    pub(crate) margin: Margin,
    /// Cards that the process sees, outside of a world.
    pub(crate) cards: Option<u32>,
    /// The rank that the process is, in a world of several.
    pub(crate) place: Option<Place>,
    /// How the card's size was understood.
    pub(crate) notes: Vec<String>,
    /// Name, value and origin, for `fathom doctor`.
    pub(crate) origins: Vec<(&'static str, String, Origin)>,
}

impl Settings {
    /// Merges flags, the environment and the nearest `fathom.toml` at or above the working folder.
    pub(crate) fn resolve(flags: &RunArguments) -> Result<Settings> {
        let file = find_file(&std::env::current_dir().unwrap_or_default());
        let (path, file) = match file {
            Some(path) => (path.clone(), read_file(&path)?),
            None => (PathBuf::new(), File::default()),
        };
        let mut merge = Merge { path, origins: Vec::new() };
        let (card, notes) = merge
            .card(flags, &file)?
            .map_or((None, Vec::new()), |Meant { card, notes }| (Some(card), notes));
        let baseline = merge.baseline(flags, &file);
        let steps = merge.number("steps", flags.steps, name::STEPS, file.steps)?;
        let timeout = merge.number("timeout", flags.timeout, name::TIMEOUT, file.timeout)?;
        let budget = merge.text("budget", flags.budget.clone(), name::BUDGET, file.budget);
        let values = merge.text("values", flags.values.clone(), name::VALUES, file.values);
        let values = switch("values", values.as_deref())?;
        let record = merge.text("record", flags.record.clone(), name::RECORD, file.record);
        let record = switch("record", record.as_deref())?;
        let margin = merge.text("margin", flags.margin.clone(), name::MARGIN, file.margin);
        Ok(Settings {
            card,
            steps: steps.unwrap_or(DEFAULT_STEPS),
            timeout,
            budget: budget.as_deref().map(|text| size("--budget", text)).transpose()?,
            values,
            assume: flags.assume.iter().map(|text| assumption(text)).collect::<Result<_>>()?,
            record,
            keeps_source: flags.page.is_some(),
            baseline,
            margin: margin.as_deref().map(margin_of).transpose()?.unwrap_or(gate::DEFAULT_MARGIN),
            cards: cards(flags.world.gpus)?,
            place: None,
            notes,
            origins: merge.origins,
        })
    }
}

/// What is assumed of all values that nobody knows.
pub(crate) const LEAST: &str = "least";
pub(crate) const MOST: &str = "most";
/// What is assumed of numbers that a function of PyTorch's reads for itself, whatever else is.
pub(crate) const ZERO: &str = "zero";

/// `train.py:88=1200`, or a word for all, checked.
fn assumption(text: &str) -> Result<String> {
    let parts = text.rsplit_once('=').and_then(|(place, number)| {
        let (file, line) = place.rsplit_once(':')?;
        let is_good = !file.is_empty() && line.parse::<u64>().is_ok();
        (is_good && number.parse::<f64>().is_ok_and(f64::is_finite)).then_some(())
    });
    match parts {
        _ if [LEAST, MOST].contains(&text) => Ok(text.to_owned()),
        Some(()) => Ok(text.to_owned()),
        None => Err(Hinted::error(
            format!("--assume does not understand `{text}`"),
            "name a line of yours and a number, as in `--assume train.py:88=1200`; or `least`, or `most`, for all",
        )),
    }
}

impl Settings {
    /// When a command that was started then has had its time.
    pub(crate) fn deadline(&self, begun: Instant) -> Option<Instant> {
        begun.checked_add(Duration::from_secs(self.timeout?))
    }
}

/// How many cards the process sees.
fn cards(asked: Option<u32>) -> Result<Option<u32>> {
    let most = MAX_DEVICES as u32;
    match asked {
        Some(0) => Err(Hinted::error("`--gpus 0`: a run without a card", "leave fathom out")),
        Some(count) if most < count => Err(Hinted::error(
            format!("{count} cards in one process"),
            format!("up to {most}; for more ranks than that, `--world-size {count}`"),
        )),
        asked => Ok(asked),
    }
}

/// Reads a margin.
fn margin_of(text: &str) -> Result<Margin> {
    Margin::parse(text).map_err(|message| Hinted::error(message, "for example `--margin 2%`"))
}

struct Merge {
    path: PathBuf,
    origins: Vec<(&'static str, String, Origin)>,
}

impl Merge {
    fn text(
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
            "values" | "record" => "on".to_owned(),
            "margin" => gate::DEFAULT_MARGIN.to_string(),
            _ => "–".to_owned(),
        };
        self.origins.push((key, value.clone().unwrap_or(default), origin));
        value
    }

    fn number(
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
    fn baseline(&mut self, flags: &RunArguments, file: &File) -> Option<PathBuf> {
        let folder = self.path.parent().map(Path::to_owned).unwrap_or_default();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let flag = flags.baseline.as_deref().map(text);
        let of_file = file.baseline.as_ref().map(|path| text(&folder.join(path)));
        self.text("baseline", flag, name::BASELINE, of_file).map(PathBuf::from)
    }

    /// The card. A name at a stronger place brings its own memory along: what a weaker place says about
    /// the memory was said of another card.
    fn card(&mut self, flags: &RunArguments, file: &File) -> Result<Option<Meant>> {
        let gpu = self.text("gpu", flags.gpu.clone(), name::GPU, file.gpu.clone());
        let memory = self.text("memory", flags.memory.clone(), name::MEMORY, file.memory.clone());
        let used = self.text("used", flags.used.clone(), name::USED, file.used.clone());
        let is_of_another = gpu.is_some() && self.strength("memory") < self.strength("gpu");
        let memory = memory.filter(|_| !is_of_another);
        Said { gpu: gpu.as_deref(), memory: memory.as_deref(), used: used.as_deref() }.meant()
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
            "known keys: gpu, memory, used, steps, timeout, budget, values, record, baseline, margin, and [[script]] with name and command",
        )
    })
}
