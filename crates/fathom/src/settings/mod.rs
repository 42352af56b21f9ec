//! What is in force and where it comes from: flags, then the environment, then `fathom.toml`.

mod file;
mod flags;
mod merge;
mod typed;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use contract::environment as name;
use contract::status::MAX_DEVICES;
use gate::Margin;
use gpus::Card;

use self::file::File;
pub(crate) use self::file::{find_file, read_file};
pub(crate) use self::flags::{all_set, with_settings};
use self::merge::{Merge, Origin};
pub(crate) use self::typed::Typed;
use crate::card::{Meant, size};
use crate::confined::Confined;
use crate::error::Hinted;
use crate::whole::ShortForm;
use crate::world::RankPlace;

/// Steps of a run unless told otherwise: the first step is not typical, the third is.
const DEFAULT_STEPS: u64 = 3;

/// What is on unless it is switched off.
fn switch(name: &str, value: Option<&str>) -> Result<bool> {
    match value {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(Hinted::error(format!("`{name}` is `{other}`"), "write `on` or `off`")),
    }
}

/// Whether a command is run again that was asked for once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    Off,
    /// Where it can be kept from writing files and connecting to other machines.
    Confined,
    /// In any case.
    On,
}

impl Verify {
    fn read(value: Option<&str>) -> Result<Verify> {
        match value {
            None | Some("confined") => Ok(Verify::Confined),
            Some("on") => Ok(Verify::On),
            Some("off") => Ok(Verify::Off),
            Some(other) => Err(Hinted::error(
                format!("`verify` is `{other}`"),
                "write `confined`, `on` or `off`",
            )),
        }
    }
}

/// `--batch-order`, checked.
fn orders(value: Option<&str>) -> Result<bool> {
    match value {
        None | Some("given") => Ok(false),
        Some("shuffle") => Ok(true),
        Some(other) => Err(Hinted::error(
            format!("`--batch-order` is `{other}`"),
            "write `given`, the script's own order, or `shuffle`, several others",
        )),
    }
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
    /// Whether the command is run again to find what it needs.
    pub(crate) verify: Verify,
    /// Whether a shortened training is run, to see what comes after the first steps.
    pub(crate) whole: bool,
    /// Whether the shortened training is run with other orders of batches, too.
    pub(crate) orders: bool,
    /// How the run is kept from leaving something behind, if it is.
    pub(crate) confined: Option<Confined>,
    /// How the training is shortened, in a trial of that kind.
    pub(crate) short: Option<ShortForm>,
    /// Whether the recording is wanted after the report: by a page, or by a plan.
    pub(crate) keeps_source: bool,
    /// The baseline to compare with.
    pub(crate) baseline: Option<PathBuf>,
    /// Allowed growth over the baseline.
    pub(crate) margin: Margin,
    /// Cards that the process sees, outside of a world.
    pub(crate) cards: Option<u32>,
    /// The rank that the process is, in a world of several.
    pub(crate) place: Option<RankPlace>,
    /// Jobs at once, at most; `None` leaves that to the cores.
    pub(crate) jobs: Option<NonZeroUsize>,
    /// How the card's size was understood.
    pub(crate) notes: Vec<String>,
    /// Name, value and origin, for `fathom doctor`.
    pub(crate) origins: Vec<(&'static str, String, Origin)>,
}

impl Settings {
    /// Merges flags, the environment and the nearest `fathom.toml` at or above the working folder.
    pub(crate) fn resolve(flags: &Typed) -> Result<Settings> {
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
        let verify = merge.text("verify", flags.verify.clone(), name::VERIFY, file.verify);
        let verify = Verify::read(verify.as_deref())?;
        let whole = merge.text("whole", flags.whole.clone(), name::WHOLE_RUN, file.whole);
        let whole = switch("whole", whole.as_deref())?;
        let margin = merge.text("margin", flags.margin.clone(), name::MARGIN, file.margin);
        let in_file = file.jobs.map(|number| number.to_string());
        let jobs = merge.text("jobs", flags.jobs.clone(), name::JOBS, in_file);
        let jobs = jobs.as_deref().map(jobs_of).transpose()?;
        Ok(Settings {
            card,
            steps: steps.unwrap_or(DEFAULT_STEPS),
            timeout,
            budget: budget.as_deref().map(|text| size("--budget", text)).transpose()?,
            values,
            assume: flags.assume.iter().map(|text| assumption(text)).collect::<Result<_>>()?,
            record,
            verify,
            whole,
            orders: orders(flags.batch_order.as_deref())?,
            confined: None,
            short: None,
            keeps_source: flags.keeps_source,
            baseline,
            margin: margin.as_deref().map(margin_of).transpose()?.unwrap_or(gate::DEFAULT_MARGIN),
            cards: cards(flags.cards)?,
            place: None,
            jobs,
            notes,
            origins: merge.origins,
        })
    }
}

/// What is assumed of all values that nobody knows.
pub(crate) const LEAST: &str = "least";
pub(crate) const MOST: &str = "most";
/// Of masks, with all else as it was.
pub(crate) const HALF: &str = "half";
/// The same, of one place that follows.
pub(crate) const MOST_AT: &str = "most at ";
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
    /// For trials: each has a card of its own, and none a budget.
    pub(crate) fn for_trials(self) -> Settings {
        Settings { card: None, budget: None, ..self }
    }

    /// When a command that was started then has had its time.
    pub(crate) fn deadline(&self, begun: Instant) -> Option<Instant> {
        begun.checked_add(Duration::from_secs(self.timeout?))
    }
}

/// How many cards the process sees.
fn cards(asked: Option<u32>) -> Result<Option<u32>> {
    let most = MAX_DEVICES as u32;
    match asked {
        Some(0) => {
            Err(Hinted::error("`--gpus` must be at least 1", "for one card leave the flag out"))
        }
        Some(count) if most < count => Err(Hinted::error(
            format!("{count} cards in one process"),
            format!("up to {most}; for more ranks than that, `--world-size {count}`"),
        )),
        asked => Ok(asked),
    }
}

/// Reads a number of jobs.
fn jobs_of(text: &str) -> Result<NonZeroUsize> {
    text.trim().parse().map_err(|_| {
        Hinted::error(
            format!("`jobs` is `{text}`"),
            "write a whole number from 1 on, as `--jobs 2`; without it, as many as cores and memory allow",
        )
    })
}

/// Reads a margin.
fn margin_of(text: &str) -> Result<Margin> {
    Margin::parse(text).map_err(|message| Hinted::error(message, "for example `--margin 2%`"))
}
