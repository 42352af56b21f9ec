//! Tries plans of levers on the phantom: the other side of `fit::plan::Bench`.

use std::path::Path;

use anyhow::Result;
use contract::environment as name;
use contract::files::levers::Lever as Row;
use contract::files::{Flops, Levers};
use fit::checkpoint::Step;
use fit::plan::{Bench, Cause, Fact, Look, Tried};
use fit::{Knob, Lever, Measured};
use recording::Category;
use serde_json::{Value, json};
use study::{Run, Source};

use crate::outcome;
use crate::runner::{OnPhantom, Wanted, hinted, measured};
use crate::warm::Job;

/// Of the peak: what explains less is no cause to act on.
const LEAST_SHARE: f64 = 0.01;

/// Of the peak: a module that owns less is not worth freezing.
const LARGE_PART: f64 = 0.1;

/// Modules that are offered for freezing, at most.
const PARTS: usize = 3;

/// Passes before a step of a trial: the memory of all further ones is the same.
const PASSES: u32 = 2;

/// The command, its knobs and the card.
pub(crate) struct Fitting {
    pub(crate) runner: OnPhantom,
    pub(crate) knobs: Vec<Knob>,
    pub(crate) card: gpus::Card,
    /// Once they were counted.
    counts: Option<Flops>,
}

impl Fitting {
    pub(crate) fn new(runner: OnPhantom, knobs: Vec<Knob>, card: gpus::Card) -> Fitting {
        Fitting { runner, knobs, card, counts: None }
    }

    fn wanted(&self, plan: &[Lever], is_limited: bool, record: bool) -> Result<Wanted> {
        let mut setting = self.runner.as_given();
        for lever in plan {
            if let Lever::Knob { name, value } = lever
                && let Some(knob) = self.knobs.iter().find(|knob| knob.name == *name)
            {
                knob.set(value, &mut setting).map_err(hinted)?;
            }
        }
        let requests: Vec<Value> = plan.iter().filter_map(request).collect();
        if !requests.is_empty() {
            setting.environment.push((name::LEVERS.to_owned(), Value::Array(requests).to_string()));
        }
        // With two passes a step: the second step is the first one with the optimizer's state.
        if plan.iter().any(|lever| matches!(lever, Lever::Accumulate(_))) {
            setting.environment.push((name::STEPS.to_owned(), "2".to_owned()));
        }
        let card = match is_limited {
            true => self.card.clone(),
            false => self.card.with_memory(gpus::UNLIMITED_BYTES),
        };
        Ok(Wanted {
            card: Some(card),
            setting,
            record,
            cold: false,
            most: None,
            row: None,
            short: None,
        })
    }

    /// Recorded runs of plans without a limit.
    pub(crate) fn record(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<(Measured, Run)>> {
        self.runner.expect(plans.len());
        let wanted =
            plans.iter().map(|plan| self.wanted(plan, false, true)).collect::<Result<_>>()?;
        let runs = self.runner.run_each(wanted)?;
        Ok(runs.into_iter().map(|(job, run)| (measured(&job, &run), run)).collect())
    }

    /// The script as it is, to count the operations of each module's forward pass.
    fn counting(&self) -> Result<Wanted> {
        let mut wanted = self.wanted(&[], false, false)?;
        wanted.setting.environment.push((name::FLOPS.to_owned(), "on".to_owned()));
        wanted.setting.environment.push((name::STEPS.to_owned(), "1".to_owned()));
        Ok(wanted)
    }

    /// Levers all at once, only to hear whether they find something to act on.
    fn asking(&self, asked: &[Lever]) -> Result<Vec<Wanted>> {
        let (apart, others): (Vec<Lever>, Vec<Lever>) =
            asked.iter().cloned().partition(Lever::is_asked_apart);
        let some = [others, apart].into_iter().filter(|levers| !levers.is_empty());
        some.map(|levers| self.wanted(&levers, false, false)).collect()
    }
}

impl Bench for Fitting {
    type Error = anyhow::Error;

    fn try_all(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Tried>> {
        self.runner.expect(plans.len());
        let wanted =
            plans.iter().map(|plan| self.wanted(plan, false, false)).collect::<Result<_>>()?;
        let tried =
            |(job, measured): (Job, Measured)| Tried { measured, facts: facts(&job.folder) };
        Ok(self.runner.answer_each(wanted)?.into_iter().map(tried).collect())
    }

    fn on_card(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Measured>> {
        self.runner.expect(plans.len());
        let wanted =
            plans.iter().map(|plan| self.wanted(plan, true, false)).collect::<Result<_>>()?;
        Ok(self.runner.answer_each(wanted)?.into_iter().map(|(_, answer)| answer).collect())
    }

    fn look(&mut self, plan: &[Lever], asked: &[Lever]) -> Result<Look> {
        let mut wanted = vec![self.wanted(plan, false, true)?];
        wanted.extend(self.counts.is_none().then(|| self.counting()).transpose()?);
        let asking = wanted.len();
        wanted.extend(self.asking(asked)?);
        self.runner.expect(wanted.len());
        let runs = self.runner.run_each(wanted)?;
        if self.counts.is_none() {
            self.counts = Some(counts(&runs[1].0.folder));
        }
        let is_whole = |run: &&(Job, Run)| run.1.verdict == study::Verdict::Fits;
        let asked = runs[asking..].iter().filter(is_whole);
        let facts = asked.flat_map(|(job, _)| facts(&job.folder)).collect();
        let (_, run) = &runs[0];
        // Without its recording no checkpoints are planned: whoever reads the answer should know why.
        let lost = run.notes.iter().filter(|note| note.starts_with(outcome::NOT_KNOWN));
        lost.for_each(|note| self.runner.counts.unread(note.clone()));
        Ok(Look { facts, step: self.step(run), ..seen(run) })
    }
}

impl Fitting {
    /// What modules save, from the recording of a trial.
    fn step(&self, run: &Run) -> Option<Step> {
        let Source { recording, timeline, .. } = run.study.as_ref()?.source.as_ref()?;
        let Flops { flops, changing } = self.counts.clone().unwrap_or_default();
        let flops_per_byte = self.card.flops() / self.card.bandwidth();
        let mut step = fit::saved::step(recording, timeline, &flops, flops_per_byte)?;
        step.candidates.retain(|candidate| !changing.contains(&candidate.path));
        Some(step)
    }
}

/// Causes of the peak, and the sizes that costs are modelled from.
fn seen(run: &Run) -> Look {
    let Some(anatomy) = run.anatomy() else { return Look::default() };
    let peak = &anatomy.allocated_peak;
    let share = |bytes: u64| bytes as f64 / peak.allocated.max(1) as f64;
    let causes = diagnose::diagnose(anatomy, false)
        .into_iter()
        .filter(|finding| LEAST_SHARE <= share(finding.bytes))
        .map(|finding| Cause {
            title: finding.title,
            bytes: finding.bytes,
            remedies: finding.remedies.into_iter().map(|it| (it.id, it.change)).collect(),
        })
        .collect();
    let is_part = |module: &&anatomy::ModuleBytes| {
        let depth = module.path.split('.').count();
        !module.path.is_empty() && depth == 1 && LARGE_PART <= share(module.total)
    };
    let mut parts: Vec<&anatomy::ModuleBytes> = peak.modules.iter().filter(is_part).collect();
    parts.sort_by_key(|module| std::cmp::Reverse(module.total));
    Look {
        causes,
        weights: peak.categories.of(Category::Weights),
        activations: peak.categories.of(Category::Activations),
        parts: parts.into_iter().take(PARTS).map(|module| module.path.clone()).collect(),
        ..Look::default()
    }
}

/// What was counted; of several processes the one with most modules.
fn counts(folder: &Path) -> Flops {
    let all = outcome::read_each::<Flops>(folder).into_iter().filter_map(|file| file.value);
    all.max_by_key(|counts| counts.flops.len()).unwrap_or_default()
}

/// A lever as the doorway wants it; `None` for those that act outside of the script.
fn request(lever: &Lever) -> Option<Value> {
    let id = lever.id();
    match lever {
        Lever::Plain(_) => Some(json!({"lever": id})),
        Lever::Allocator(settings) => Some(json!({"lever": id, "settings": settings})),
        Lever::Accumulate(parts) => Some(json!({"lever": id, "parts": parts, "passes": PASSES})),
        Lever::Checkpoint(modules) | Lever::Freeze(modules) => {
            Some(json!({"lever": id, "modules": modules}))
        }
        Lever::Knob { .. } => None,
    }
}

/// What levers said; of several processes the one in which most took hold.
fn facts(folder: &Path) -> Vec<Fact> {
    let all = outcome::read_each::<Levers>(folder).into_iter().filter_map(|file| file.value);
    let rows = all.map(|file| file.levers);
    let best = rows.max_by_key(|rows| rows.iter().filter(|row| row.applied).count());
    let fact = |row: Row| Fact {
        lever: row.lever,
        applied: row.applied,
        reason: row.reason,
        sites: row.sites,
        places: row.places.into_iter().map(from_here).collect(),
        change: row.change,
        meets_batch_norm: row.meets_batch_norm,
        batch: row.batch,
    };
    best.into_iter().flatten().map(fact).collect()
}

/// A place as people name it.
fn from_here(place: String) -> String {
    crate::here::from_here(place)
}
