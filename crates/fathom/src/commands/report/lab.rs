//! Trials of the command with settings turned and remedies applied.

use std::collections::BTreeMap;

use anatomy::{Alike, Peaks};
use anyhow::Result;
use fit::plan::{Bench, Plan, Speeds, Wish};
use fit::{Knob, Lever, Measured, Outcome};
use gpus::Card;
use recording::Category;
use report::document::Document;
use study::{Run, Source};

use super::knobs::Found;
use crate::cli::ReportArguments;
use crate::commands::fit::{precision, usual_headroom};
use crate::commands::sweep::questions;
use crate::fitting::Fitting;
use crate::progress::Progress;
use crate::runner::OnPhantom;
use crate::settings::{Settings, Typed};

/// Recorded trials that are held at once: a recording may be large.
const AT_ONCE: usize = 4;

/// Tensors from this part of the peak on are compared between trials.
const LARGE: u64 = 500;

/// Settings that a plan may turn.
const KNOBS: usize = 2;

pub(super) struct Lab {
    pub(super) fitting: Fitting,
    pub(super) card: Card,
    pub(super) wish: Wish,
    /// Settings of the script that are on or off.
    pub(super) switches: Vec<Found>,
    numbers: Vec<Found>,
}

/// What is kept of a recorded trial without a limit.
pub(super) struct Trial {
    pub(super) outcome: Outcome,
    pub(super) peaks: Peaks,
    pub(super) causes: BTreeMap<&'static str, u64>,
    /// Every large tensor that it made, whenever.
    pub(super) tensors: Vec<Alike>,
    scratch: u64,
}

impl Trial {
    /// Scratch memory of libraries at the peak.
    pub(super) fn scratch(&self) -> u64 {
        self.scratch
    }

    /// Libraries choose their scratch memory by what is free: growth is that of all else.
    pub(super) fn without_scratch(&self) -> u64 {
        self.peaks.allocated.saturating_sub(self.scratch)
    }
}

impl Lab {
    pub(super) fn new(arguments: &ReportArguments, found: &[Found], card: Card) -> Result<Lab> {
        let trial = &arguments.trial;
        let settings = Settings::resolve(&Typed::from(trial))?.for_trials();
        let progress = Progress::new(trial.quiet);
        let cards = vec![card.clone()];
        let runner =
            OnPhantom::new(&trial.command, Vec::new(), cards, settings, !trial.fresh, progress)?;
        let knobs: Vec<Knob> = found.iter().map(|found| found.knob.clone()).collect();
        let wish = Wish {
            card: questions(std::slice::from_ref(&card)).swap_remove(0),
            speeds: Speeds { flops: card.flops(), bandwidth: card.bandwidth() },
            only: Vec::new(),
            allow_training: true,
            knobs: Vec::new(),
            headroom: usual_headroom(&card),
            precision: precision(&card),
        };
        let is_switch = |found: &&Found| found.wanted.is_empty() && found.flipped().is_some();
        let switches: Vec<Found> = found.iter().filter(is_switch).cloned().collect();
        let numbers: Vec<Found> =
            found.iter().filter(|found| found.number().is_some()).cloned().collect();
        Ok(Lab {
            fitting: Fitting::new(runner, knobs, card.clone()),
            card,
            wish,
            switches,
            numbers,
        })
    }

    /// Recorded trials without a limit; ends early if a signal asks for it.
    pub(super) fn record(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Trial>> {
        let mut trials = Vec::new();
        for some in plans.chunks(AT_ONCE) {
            if crate::session::ending().is_some() {
                break;
            }
            trials.extend(
                self.fitting.record(some)?.into_iter().map(|(measured, run)| of(measured, &run)),
            );
        }
        Ok(trials)
    }

    /// Trials without a limit and without a recording.
    pub(super) fn measure(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Measured>> {
        Ok(self.fitting.try_all(plans)?.into_iter().map(|tried| tried.measured).collect())
    }

    /// Smaller values of the settings that move the peak: half of each, a quarter, an eighth.
    pub(super) fn smaller(&self, document: &Document) -> Vec<(String, Vec<String>)> {
        let moving = document.scaling.iter().flat_map(|scaling| &scaling.knobs);
        let found =
            moving.filter_map(|knob| self.numbers.iter().find(|it| it.knob.name == knob.name));
        let halves = |found: &Found| {
            let number = found.number()?;
            let parts = [2, 4, 8].into_iter().filter(|part| number % part == 0);
            let values: Vec<String> = parts.map(|part| (number / part).to_string()).collect();
            (!values.is_empty()).then(|| (found.knob.name.clone(), values))
        };
        found.filter_map(halves).take(KNOBS).collect()
    }

    /// What to write for a plan, as `fathom fit` says it.
    pub(super) fn patch(&self, plan: &Plan) -> String {
        let written =
            |knob: &Knob, value: &String| (knob.name.clone(), value.clone(), knob.shown(value));
        let turned = plan.levers.iter().filter_map(|lever| match lever {
            Lever::Knob { name, value } => self
                .fitting
                .knobs
                .iter()
                .find(|knob| knob.name == *name)
                .map(|knob| written(knob, value)),
            _ => None,
        });
        report::fit::patch_of(plan, &turned.collect::<Vec<_>>())
    }
}

/// What is compared of a trial.
fn of(measured: Measured, run: &Run) -> Trial {
    let source = run.study.as_ref().and_then(|study| study.source.as_ref());
    let least = measured.peaks.allocated / LARGE;
    let tensors = source.map_or_else(Vec::new, |Source { recording, timeline, .. }| {
        anatomy::allocations(recording, timeline, &|bytes| least <= bytes)
    });
    Trial {
        outcome: measured.outcome,
        peaks: measured.peaks,
        causes: run.anatomy().map(diagnose::bytes_by_cause).unwrap_or_default(),
        tensors,
        scratch: run.anatomy().map_or(0, |it| it.allocated_peak.categories.of(Category::Workspace)),
    }
}
