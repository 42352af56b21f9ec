//! Tries plans of levers on the phantom: the other side of `fit::plan::Bench`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use allocator::{Settings as Allocator, reproduce};
use anyhow::Result;
use cuda_abi::environment as name;
use fit::checkpoint::Step;
use fit::plan::{Bench, Fact, Tried};
use fit::{Knob, Label, Lever, Measured};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::runner::{OnPhantom, Wanted, measured};
use crate::warm::Job;

/// Operations that take as long as moving one byte, to compare kernels that compute with kernels that
/// copy. Assumed: cards of the catalogue have between 10 and 40 in single precision.
const FLOPS_PER_BYTE: f64 = 20.0;

/// The command, its knobs and the card.
pub(crate) struct Fitting {
    pub(crate) runner: OnPhantom,
    pub(crate) knobs: Vec<Knob>,
    pub(crate) card: gpus::Card,
    /// Once they were counted.
    counts: Option<Counts>,
}

/// `flops.<pid>.json`.
#[derive(Clone, Debug, Default, Deserialize)]
struct Counts {
    /// Operations by module, without those of modules inside of it.
    flops: BTreeMap<String, u64>,
    /// Modules that change their arguments.
    changing: Vec<String>,
}

/// A row of `levers.<pid>.json`.
#[derive(Debug, Deserialize)]
struct Row {
    lever: String,
    applied: bool,
    reason: Option<String>,
    sites: Vec<String>,
    places: Vec<String>,
    change: String,
    label: String,
}

impl Fitting {
    pub(crate) fn new(runner: OnPhantom, knobs: Vec<Knob>, card: gpus::Card) -> Fitting {
        Fitting { runner, knobs, card, counts: None }
    }

    fn wanted(&self, plan: &[Lever], is_limited: bool, record: bool) -> Wanted {
        let mut setting = self.runner.as_given();
        for lever in plan {
            if let Lever::Knob { name, value } = lever
                && let Some(knob) = self.knobs.iter().find(|knob| knob.name == *name)
            {
                knob.set(value, &mut setting);
            }
        }
        let requests: Vec<Value> = plan.iter().filter_map(request).collect();
        if !requests.is_empty() {
            setting.environment.push((name::LEVERS.to_owned(), Value::Array(requests).to_string()));
        }
        let card = match is_limited {
            true => self.card.clone(),
            false => self.card.with_memory(gpus::UNLIMITED_BYTES),
        };
        Wanted { card: Some(card), setting, record, cold: false }
    }

    /// Operations of each module's forward pass, counted once.
    fn counts(&mut self) -> Result<Counts> {
        if let Some(counts) = &self.counts {
            return Ok(counts.clone());
        }
        let mut wanted = self.wanted(&[], false, false);
        wanted.setting.environment.push((name::FLOPS.to_owned(), "on".to_owned()));
        wanted.setting.environment.push((name::STEPS.to_owned(), "1".to_owned()));
        let (job, _) = self.runner.run_each(vec![wanted])?.swap_remove(0);
        let texts = files(&job.folder, "flops.")
            .into_iter()
            .filter_map(|path| fs::read_to_string(path).ok());
        let all = texts.filter_map(|text| serde_json::from_str::<Counts>(&text).ok());
        let counts = all.max_by_key(|counts| counts.flops.len()).unwrap_or_default();
        self.counts = Some(counts.clone());
        Ok(counts)
    }
}

impl Bench for Fitting {
    type Error = anyhow::Error;

    fn try_all(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Tried>> {
        self.runner.expect(plans.len());
        let wanted = plans.iter().map(|plan| self.wanted(plan, false, false)).collect();
        let tried = |(job, run): (Job, report::Run)| Tried {
            measured: measured(&job, &run),
            facts: facts(&job.folder),
        };
        Ok(self.runner.run_each(wanted)?.into_iter().map(tried).collect())
    }

    fn on_card(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Measured>> {
        self.runner.expect(plans.len());
        let wanted = plans.iter().map(|plan| self.wanted(plan, true, false)).collect();
        Ok(self.runner.run_each(wanted)?.iter().map(|(job, run)| measured(job, run)).collect())
    }

    fn step(&mut self, plan: &[Lever]) -> Result<Option<Step>> {
        self.runner.expect(2);
        let Counts { flops, changing } = self.counts()?;
        let wanted = self.wanted(plan, false, true);
        let (job, _) = self.runner.run_each(vec![wanted])?.swap_remove(0);
        let largest = files(&job.folder, "recording.")
            .into_iter()
            .max_by_key(|path| fs::metadata(path).map_or(0, |data| data.len()));
        let bytes = largest.and_then(|path| fs::read(path).ok());
        let Some(recording) = bytes.and_then(|bytes| recording::file::read(&bytes).ok()) else {
            return Ok(None);
        };
        let Ok(settings) = Allocator::of(&recording.about) else { return Ok(None) };
        let timeline = reproduce(&recording, &settings).timeline;
        let step = fit::saved::step(&recording, &timeline, &flops, FLOPS_PER_BYTE);
        Ok(step.map(|mut step| {
            step.candidates.retain(|candidate| !changing.contains(&candidate.path));
            step
        }))
    }
}

/// A lever as the doorway wants it; `None` for those that act outside of the script.
fn request(lever: &Lever) -> Option<Value> {
    match lever {
        Lever::Plain(id) => Some(json!({"lever": id})),
        Lever::Allocator(settings) => Some(json!({"lever": "allocator", "settings": settings})),
        Lever::Checkpoint(modules) => Some(json!({"lever": "checkpoint", "modules": modules})),
        Lever::Accumulate(parts) => Some(json!({"lever": "accumulate", "parts": parts})),
        Lever::Knob { .. } => None,
    }
}

/// Files of a trial whose names begin like this.
fn files(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    named.map(|entry| entry.path()).collect()
}

/// What levers said; of several processes the one in which most took hold.
fn facts(folder: &Path) -> Vec<Fact> {
    let texts =
        files(folder, "levers.").into_iter().filter_map(|path| fs::read_to_string(path).ok());
    let rows = texts.filter_map(|text| serde_json::from_str::<Vec<Row>>(&text).ok());
    let best = rows.max_by_key(|rows| rows.iter().filter(|row| row.applied).count());
    let fact = |row: Row| Fact {
        lever: row.lever,
        applied: row.applied,
        reason: row.reason,
        sites: row.sites,
        places: row.places.into_iter().map(from_here).collect(),
        change: row.change,
        label: Label::parse(&row.label),
    };
    best.into_iter().flatten().map(fact).collect()
}

/// A place as people name it.
fn from_here(place: String) -> String {
    crate::dissect::from_here(place)
}
