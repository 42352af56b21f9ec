//! The stages of a search: which plans are tried, and when it is enough.

use super::{Bench, Fact, Plan, Tried, Wish};
use crate::checkpoint::Planner;
use crate::lever::{FREE, Label, Lever, label};
use crate::trial::{Measured, Peaks, Verdict, verdict_for};

/// Checkpoint plans of one stage, at most; not all of them are tried.
const RUNGS: usize = 48;

/// Parts of a batch that are tried.
const PARTS: [u32; 3] = [2, 4, 8];

/// What helps by less than this share of the peak is left out.
const LEAST_GAIN: f64 = 0.005;

/// A forward pass is about a third of a step: the backward pass takes two matrix products for each of its one.
const FORWARD_SHARE: f64 = 1.0 / 3.0;

/// The allocator's setting that is tried.
const SEGMENTS: &str = "expandable_segments:True";

/// The strongest label of a plan's levers, in general and as they found this script.
fn strongest(levers: &[Lever], facts: &[Fact]) -> Label {
    let found = facts.iter().filter_map(|fact| fact.label);
    levers.iter().map(label).chain(found).max().unwrap_or(Label::Exact)
}

/// Of so many choices, each with a lower peak than the one before, the first that fits: two at a time, by
/// thirds. If the last does not fit, two others show how far the way is.
fn first_that_fits<E>(
    count: usize,
    mut fits: impl FnMut(&[usize]) -> Result<Vec<bool>, E>,
) -> Result<(), E> {
    if count == 0 {
        return Ok(());
    }
    let (mut low, mut high) = (0, count - 1);
    let ends = if count == 1 { vec![0] } else { vec![high, count / 2] };
    let found = fits(&ends)?;
    if !found[0] {
        return Ok(());
    }
    match found.get(1) {
        Some(true) => high = count / 2,
        Some(false) => low = count / 2 + 1,
        None => return Ok(()),
    }
    while low < high {
        let mut middle = vec![low + (high - low) / 3, low + 2 * (high - low) / 3];
        middle.dedup();
        let found = fits(&middle)?;
        match found.iter().position(|fits| *fits) {
            Some(at) => {
                high = middle[at];
                low = if at == 0 { low } else { middle[at - 1] + 1 };
            }
            None => low = middle[middle.len() - 1] + 1,
        }
    }
    Ok(())
}

/// A search on its way.
pub(super) struct Search<'a, B: Bench> {
    pub(super) bench: &'a mut B,
    pub(super) wish: &'a Wish,
    pub(super) plans: Vec<Plan>,
    /// Levers that did not take hold, and why.
    pub(super) refused: Vec<(String, String)>,
    /// Of the script as it is.
    pub(super) base: Peaks,
}

impl<B: Bench> Search<'_, B> {
    /// Stage by stage, until a plan fits.
    pub(super) fn stages(&mut self) -> Result<(), B::Error> {
        let free = self.free()?;
        let exact: Vec<Lever> =
            free.iter().filter(|lever| label(lever) == Label::Exact).cloned().collect();
        self.together(&exact)?;
        if self.is_done(Label::Exact) {
            return Ok(());
        }
        self.recompute(&exact)?;
        if self.is_done(Label::Exact) {
            return Ok(());
        }
        if free != exact {
            self.together(&free)?;
            self.recompute(&free)?;
        }
        self.divide(&free)?;
        if self.is_done(Label::NumericallyEqual) {
            return Ok(());
        }
        if self.wants("offload") {
            self.add(&free, &[vec![Lever::Plain("offload")]], &[1.0])?;
        }
        self.lower_precision(&free)?;
        if self.is_done(Label::ChangesStatistics) {
            return Ok(());
        }
        self.turn_knobs(&free)?;
        match self.wish.allow_training && !self.is_done(Label::ChangesFunction) {
            true => self.retrain(&free),
            false => Ok(()),
        }
    }

    fn wants(&self, lever: &str) -> bool {
        self.wish.only.is_empty() || self.wish.only.iter().any(|wanted| wanted == lever)
    }

    /// Whether a plan fits that does no more to the training than this: later stages do more.
    fn is_done(&self, label: Label) -> bool {
        self.plans.iter().any(|plan| plan.fits && plan.label <= label)
    }

    /// Levers that cost nothing, one by one; those that help.
    fn free(&mut self) -> Result<Vec<Lever>, B::Error> {
        let plain = FREE.iter().filter(|id| self.wants(id)).map(|id| Lever::Plain(id));
        let segments =
            Some(Lever::Allocator(SEGMENTS.to_owned())).filter(|_| self.wants("allocator"));
        let single: Vec<Vec<Lever>> = plain.chain(segments).map(|lever| vec![lever]).collect();
        let before = self.plans.len();
        self.add(&[], &single, &vec![1.0; single.len()])?;
        let enough = self.base.reserved as f64 * (1.0 - LEAST_GAIN);
        let helps = |plan: &&Plan| plan.peaks.reserved as f64 <= enough;
        let helpful =
            self.plans[before..].iter().filter(helps).flat_map(|plan| plan.levers.clone());
        Ok(helpful.collect())
    }

    fn together(&mut self, levers: &[Lever]) -> Result<(), B::Error> {
        if 1 < levers.len() {
            self.add(&[], &[levers.to_vec()], &[1.0])?;
        }
        Ok(())
    }

    /// Checkpoints on top of other levers, from few to as many as help.
    fn recompute(&mut self, with: &[Lever]) -> Result<(), B::Error> {
        if !self.wants("checkpoint") {
            return Ok(());
        }
        let Some(step) = self.bench.step(with)? else { return Ok(()) };
        let choices = Planner::new(&step).ladder(RUNGS);
        let choices: Vec<_> =
            choices.into_iter().filter(|choice| !choice.chosen.is_empty()).collect();
        let plan = |index: &usize| {
            let chosen = choices[*index].chosen.iter();
            vec![Lever::Checkpoint(chosen.map(|&at| step.candidates[at].path.clone()).collect())]
        };
        let cost = |index: &usize| 1.0 + FORWARD_SHARE * choices[*index].cost / step.forward_cost;
        let fits = |indices: &[usize]| -> Result<Vec<bool>, B::Error> {
            let plans: Vec<Vec<Lever>> = indices.iter().map(plan).collect();
            self.add(with, &plans, &indices.iter().map(cost).collect::<Vec<_>>())?;
            let is_fit = |plan: &Vec<Lever>| {
                let whole = [with, plan.as_slice()].concat();
                self.plans.iter().any(|tried| tried.fits && tried.levers == whole)
            };
            Ok(plans.iter().map(is_fit).collect())
        };
        first_that_fits(choices.len(), fits)
    }

    /// Smaller batches whose gradients add up, alone and with as many checkpoints as help.
    fn divide(&mut self, with: &[Lever]) -> Result<(), B::Error> {
        if !self.wants("accumulate") {
            return Ok(());
        }
        let parts: Vec<Vec<Lever>> =
            PARTS.iter().map(|&parts| vec![Lever::Accumulate(parts)]).collect();
        let before = self.plans.len();
        self.add(with, &parts, &[1.0; PARTS.len()])?;
        let applied: Vec<Vec<Lever>> =
            self.plans[before..].iter().map(|plan| plan.levers.clone()).collect();
        let Some((recomputed, cost)) = self.most_recomputed(with) else { return Ok(()) };
        let both: Vec<Vec<Lever>> = applied
            .into_iter()
            .map(|plan| plan.into_iter().chain([recomputed.clone()]).collect())
            .collect();
        self.add(&[], &both, &vec![cost; both.len()])
    }

    /// The checkpoint plan with the lowest peak on top of these levers.
    fn most_recomputed(&self, with: &[Lever]) -> Option<(Lever, f64)> {
        let has = |plan: &&Plan| {
            with.iter().all(|lever| plan.levers.contains(lever))
                && plan.levers.len() == with.len() + 1
        };
        let recomputed = self.plans.iter().filter(has).filter_map(|plan| {
            let lever = plan.levers.iter().find(|lever| matches!(lever, Lever::Checkpoint(_)))?;
            Some((plan.peaks.reserved, lever.clone(), plan.cost_ratio))
        });
        recomputed.min_by_key(|row| row.0).map(|(_, lever, cost)| (lever, cost))
    }

    fn lower_precision(&mut self, free: &[Lever]) -> Result<(), B::Error> {
        if !self.wants(self.wish.precision) {
            return Ok(());
        }
        let with: Vec<Lever> =
            free.iter().cloned().chain([Lever::Plain(self.wish.precision)]).collect();
        let before = self.plans.len();
        self.add(&with, &[Vec::new()], &[1.0])?;
        if self.plans.len() == before {
            return Ok(());
        }
        self.recompute(&with)?;
        self.divide(&with)
    }

    /// The user's own knobs, each value alone and with as many checkpoints as help.
    fn turn_knobs(&mut self, free: &[Lever]) -> Result<(), B::Error> {
        let recomputed = self.most_recomputed(free);
        for (name, values) in &self.wish.knobs {
            let turned: Vec<Vec<Lever>> = values
                .iter()
                .map(|value| vec![Lever::Knob { name: name.clone(), value: value.clone() }])
                .collect();
            self.add(free, &turned, &vec![1.0; turned.len()])?;
            if let Some((lever, cost)) = &recomputed {
                let both: Vec<Vec<Lever>> = turned
                    .into_iter()
                    .map(|plan| plan.into_iter().chain([lever.clone()]).collect())
                    .collect();
                self.add(free, &both, &vec![*cost; both.len()])?;
            }
        }
        Ok(())
    }

    /// Another optimizer, alone and with what came lowest so far.
    fn retrain(&mut self, free: &[Lever]) -> Result<(), B::Error> {
        let lowest = self.plans.iter().min_by_key(|plan| plan.peaks.reserved);
        let lowest = lowest.map(|plan| (plan.levers.clone(), plan.cost_ratio));
        for id in ["8bit-optimizer", "adafactor", "sgd"] {
            if !self.wants(id) {
                continue;
            }
            self.add(free, &[vec![Lever::Plain(id)]], &[1.0])?;
            if let Some((levers, cost)) = &lowest {
                self.add(levers, &[vec![Lever::Plain(id)]], &[*cost])?;
            }
        }
        Ok(())
    }

    /// Levers that did not take hold, and those with which the script fails: by the last one, which was added.
    fn note_refusals(&mut self, levers: &[Lever], measured: &Measured, facts: &[Fact]) {
        let mut refusals: Vec<(String, String)> = match &measured.verdict {
            Verdict::Failed(why) => {
                let id = levers.last().map_or("", Lever::id).to_owned();
                let why = why.lines().next().unwrap_or_default();
                vec![(id, format!("the script fails with it: {why}"))]
            }
            _ => facts
                .iter()
                .filter(|fact| !fact.applied)
                .map(|fact| (fact.lever.clone(), fact.reason.clone().unwrap_or_default()))
                .collect(),
        };
        refusals.retain(|refusal| !self.refused.contains(refusal));
        self.refused.extend(refusals);
    }

    /// Tries `with` and each of `plans` on top; keeps those of which every lever took hold.
    fn add(&mut self, with: &[Lever], plans: &[Vec<Lever>], costs: &[f64]) -> Result<(), B::Error> {
        let whole: Vec<Vec<Lever>> = plans.iter().map(|plan| [with, plan].concat()).collect();
        let (mut tried, mut undecided) = (Vec::new(), Vec::new());
        for ((levers, tried_plan), cost) in whole.iter().zip(self.bench.try_all(&whole)?).zip(costs)
        {
            let Tried { measured, facts } = tried_plan;
            self.note_refusals(levers, &measured, &facts);
            if facts.iter().any(|fact| !fact.applied) || measured.verdict != Verdict::Fits {
                continue;
            }
            let decided = verdict_for(&self.wish.card, &measured.peaks);
            if decided.is_none() {
                undecided.push(tried.len());
            }
            tried.push(Plan {
                levers: levers.clone(),
                label: strongest(levers, &facts),
                peaks: measured.peaks,
                fits: decided == Some(Verdict::Fits),
                cost_ratio: *cost,
                offloads: levers.contains(&Lever::Plain("offload")),
                facts,
            });
        }
        let on_card: Vec<Vec<Lever>> =
            undecided.iter().map(|&index| tried[index].levers.clone()).collect();
        for (&index, measured) in undecided.iter().zip(self.bench.on_card(&on_card)?) {
            tried[index].fits = measured.verdict == Verdict::Fits;
            if tried[index].fits {
                tried[index].peaks = measured.peaks;
            }
        }
        self.plans.extend(tried);
        Ok(())
    }
}
