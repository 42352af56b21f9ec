//! The stages of a search: which plans are tried, and when it is enough.

use diagnose::remedies::{Row, Stage};

use super::tries::{Search, first_that_fits};
use super::{Bench, Plan, order};
use crate::checkpoint::{Planner, Step};
use crate::lever::{
    ACCUMULATE, CHECKPOINT, CHUNKED_LOSS, FUSED_OPTIMIZER, LINEAR_LOSS, Lever, NO_FOREACH,
    SELECTIVE, SWITCH, of_stage, probed,
};

/// Checkpoint plans of one stage, at most; not all of them are tried.
const RUNGS: usize = 48;

/// Into more parts than this a batch is not divided.
const MOST_PARTS: u32 = 64;

/// What helps by less than this share of the peak is left out.
const LEAST_GAIN: f64 = 0.005;

impl<B: Bench> Search<'_, B> {
    /// Stage by stage, until a plan fits.
    pub(super) fn stages(&mut self) -> Result<(), B::Error> {
        let asked = probed().filter(|row| self.wants(row.id));
        let asked: Vec<Lever> = asked.filter_map(Lever::of).collect();
        self.look = self.bench.look(&[], &asked)?;
        self.note_facts(&self.look.facts.clone());
        let helpful = self.free()?;
        // What nobody can write for this script is taken only where nothing else is enough.
        let free: Vec<Lever> = helpful.iter().filter(|it| self.is_writable(it)).cloned().collect();
        self.together(&free)?;
        // What most people would take goes beside what computes the same, with its label.
        let precisions: Vec<Vec<Lever>> =
            self.precisions().into_iter().map(|it| vec![it]).collect();
        self.add(&[], &precisions, &[])?;
        if self.is_done_in_writing(0) {
            return Ok(());
        }
        self.recompute(&free)?;
        if !self.is_done(0) && free.len() < helpful.len() {
            self.together(&helpful)?;
            self.recompute(&helpful)?;
        }
        if self.is_done(0) {
            return Ok(());
        }
        self.divide(&free)?;
        if self.is_done(1) {
            return Ok(());
        }
        self.lower_precision(&free)?;
        if self.is_done(2) {
            return Ok(());
        }
        self.offload(&free)?;
        if self.is_done(3) {
            return Ok(());
        }
        self.turn_knobs(&free)?;
        // Where the state alone is too much, no milder change is enough: others are tried to be proposed.
        let is_asked = self.wish.allow_training || self.is_state_bound();
        match is_asked && !self.is_done(4) {
            true => self.retrain(&free),
            false => Ok(()),
        }
    }

    pub(super) fn is_state_bound(&self) -> bool {
        self.wish.card.usable_bytes.saturating_sub(self.wish.headroom) < self.look.state
    }

    /// Without levers that cost nothing, where the best plan fits without them as well: fewer changes do the same.
    pub(super) fn simplify(&mut self) -> Result<(), B::Error> {
        let wish = self.wish;
        let is_open = |plan: &&Plan| wish.may_take(plan) && !wish.is_tight(plan);
        let Some(best) = self.plans.iter().filter(is_open).min_by(|a, b| order(a, b)) else {
            return Ok(());
        };
        let (mut levers, again) = (best.levers.clone(), best.again);
        for lever in levers.clone().into_iter().filter(Lever::is_free) {
            let fewer: Vec<Lever> = levers.iter().filter(|it| **it != lever).cloned().collect();
            if fewer.is_empty() {
                break;
            }
            self.add(&[], std::slice::from_ref(&fewer), &[again])?;
            if self.did_fit(&fewer) {
                levers = fewer;
            }
        }
        Ok(())
    }

    /// Levers that cost nothing, one by one; those that help.
    fn free(&mut self) -> Result<Vec<Lever>, B::Error> {
        let is_open = |row: &&Row| self.is_due(row) && self.takes_hold(row.id);
        let single = of_stage(Stage::Free).filter(is_open).filter_map(Lever::of);
        let own = of_stage(Stage::Free).flat_map(|row| self.own(row.id));
        let single: Vec<Vec<Lever>> = own.chain(single).map(|lever| vec![lever]).collect();
        let before = self.plans.len();
        self.add(&[], &single, &[])?;
        let mut helpful = self.helpful(before, self.base.reserved);
        // Both do without the same temporaries, and the fused step is the quicker one.
        if helpful.contains(&Lever::Plain(FUSED_OPTIMIZER)) {
            helpful.retain(|lever| *lever != Lever::Plain(NO_FOREACH));
        }
        if helpful.contains(&Lever::Plain(LINEAR_LOSS)) {
            helpful.retain(|lever| *lever != Lever::Plain(CHUNKED_LOSS));
        }
        // What the script can do by itself needs no other change.
        let own: Vec<Lever> = helpful.clone();
        helpful.retain(|lever| !own.iter().any(|it| it.is_like(lever.id()) && it != lever));
        Ok(helpful)
    }

    /// Whether a plan of this alone was tried that can be written as a patch.
    fn is_writable(&self, lever: &Lever) -> bool {
        self.plans.iter().any(|plan| plan.levers == [lever.clone()] && plan.is_writable())
    }

    /// The last levers of the plans that were added since, where they brought the peak down.
    pub(super) fn helpful(&self, since: usize, peak: u64) -> Vec<Lever> {
        let enough = peak as f64 * (1.0 - LEAST_GAIN);
        let helps = |plan: &&Plan| plan.peaks.reserved as f64 <= enough;
        let last = |plan: &Plan| plan.levers.last().cloned();
        self.plans[since..].iter().filter(helps).filter_map(last).collect()
    }

    fn together(&mut self, levers: &[Lever]) -> Result<(), B::Error> {
        match 1 < levers.len() {
            true => self.add(&[], &[levers.to_vec()], &[]),
            false => Ok(()),
        }
    }

    /// Of plans on top of others, each with a lower peak than the one before, the first that fits.
    pub(super) fn first_of(
        &mut self,
        with: &[Lever],
        plans: &[Vec<Lever>],
        again: &[f64],
    ) -> Result<(), B::Error> {
        first_that_fits(plans.len(), |indices: &[usize]| {
            let some: Vec<Vec<Lever>> = indices.iter().map(|&at| plans[at].clone()).collect();
            let cost = |&at: &usize| again.get(at).copied().unwrap_or(0.0);
            self.add(with, &some, &indices.iter().map(cost).collect::<Vec<f64>>())?;
            Ok(some.iter().map(|plan| self.did_fit(&[with, plan].concat())).collect())
        })
    }

    /// Checkpoints on top of other levers, from few to as many as help.
    /// Where the library has a switch for them, that is what people write: if it is enough, nothing is planned.
    pub(super) fn recompute(&mut self, with: &[Lever]) -> Result<(), B::Error> {
        let all = self.look.step.as_ref().map_or(0.0, |step| step.forward_cost);
        let mut switches = self.own(SWITCH);
        if self.wants(SWITCH) && self.takes_hold(SWITCH) {
            switches.push(Lever::Plain(SWITCH));
        }
        for switch in switches {
            let switch = vec![switch];
            self.add(&[], std::slice::from_ref(&switch), &[all])?;
            if self.did_fit(&switch) {
                return Ok(());
            }
            self.add(with, std::slice::from_ref(&switch), &[all])?;
            if self.did_fit(&[with, &switch].concat()) {
                return Ok(());
            }
        }
        if !self.wants(CHECKPOINT) && !self.wants(SELECTIVE) {
            return Ok(());
        }
        let step = match with.is_empty() {
            true => self.look.step.clone(),
            false => self.bench.look(with, &[])?.step,
        };
        let Some(mut step) = step else { return Ok(()) };
        step.candidates
            .retain(|it| self.wants(if it.keeps_products { SELECTIVE } else { CHECKPOINT }));
        let choices = Planner::new(&step).ladder(RUNGS);
        let choices = choices.into_iter().filter(|choice| !choice.chosen.is_empty());
        let (plans, again): (Vec<Vec<Lever>>, Vec<f64>) =
            choices.map(|choice| (checkpoints(&step, &choice.chosen), choice.cost)).unzip();
        self.first_of(with, &plans, &again)
    }

    /// Smaller batches whose gradients add up, in as few parts as are enough; alone, then with as many
    /// checkpoints as help.
    pub(super) fn divide(&mut self, with: &[Lever]) -> Result<(), B::Error> {
        let mut ladders = self.own_ladders();
        if self.wants(ACCUMULATE) && self.takes_hold(ACCUMULATE) {
            ladders.push(self.parts().into_iter().map(|lever| vec![lever]).collect());
        }
        for parts in ladders {
            self.first_of(with, &parts, &[])?;
            if parts.iter().any(|plan| self.did_fit(&[with, plan].concat())) {
                return Ok(());
            }
            let Some((recomputed, again)) = self.most_recomputed(with) else { continue };
            let with: Vec<Lever> = [with, &recomputed].concat();
            self.first_of(&with, &parts, &vec![again; parts.len()])?;
            if parts.iter().any(|plan| self.did_fit(&[with.as_slice(), plan].concat())) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Smaller batches by settings of the script's own, from few parts to many: one ladder for each pair of settings.
    fn own_ladders(&self) -> Vec<Vec<Vec<Lever>>> {
        let mut ladders: Vec<Vec<Vec<Lever>>> = Vec::new();
        for lever in self.own(ACCUMULATE) {
            match ladders.last_mut().filter(|ladder| ladder[0][0].id() == lever.id()) {
                Some(ladder) => ladder.push(vec![lever]),
                None => ladders.push(vec![vec![lever]]),
            }
        }
        ladders
    }

    /// Halves, quarters and so on of the script's batch.
    pub(super) fn parts(&self) -> Vec<Lever> {
        let fact = self.look.facts.iter().find(|fact| fact.lever == ACCUMULATE);
        let batch = fact.and_then(|fact| fact.batch).unwrap_or(2);
        let powers = (1..u32::BITS).map(|power| 1 << power);
        let divides = powers.take_while(|parts| *parts <= MOST_PARTS && batch % parts == 0);
        divides.map(Lever::Accumulate).collect()
    }

    /// The checkpoints with the lowest peak on top of these levers, and what they do again.
    pub(super) fn most_recomputed(&self, with: &[Lever]) -> Option<(Vec<Lever>, f64)> {
        let recomputes = |lever: &Lever| {
            matches!(lever, Lever::Checkpoint(_) | Lever::Selective(_) | Lever::Plain(SWITCH))
                || lever.is_like(SWITCH)
        };
        let recomputed = self.plans.iter().filter_map(|plan| {
            let more = plan.levers.strip_prefix(with)?;
            let is_it = !more.is_empty() && more.iter().all(recomputes);
            is_it.then(|| (plan.peaks.reserved, more.to_vec(), plan.again))
        });
        recomputed.min_by_key(|row| row.0).map(|(_, levers, again)| (levers, again))
    }
}

/// Checkpoints as many as help: the plan with the lowest peak; `None` if none does.
pub fn most_checkpoints(step: &Step) -> Option<Lever> {
    lowest(step, false).map(|(lever, _)| lever)
}

/// The same for one of the two kinds of checkpoints, with what it costs.
pub(super) fn lowest(step: &Step, keeps_products: bool) -> Option<(Lever, f64)> {
    let mut step = step.clone();
    step.candidates.retain(|candidate| candidate.keeps_products == keeps_products);
    let choices = Planner::new(&step).ladder(RUNGS);
    let lowest = choices.into_iter().rfind(|choice| !choice.chosen.is_empty())?;
    Some((checkpoints(&step, &lowest.chosen).pop()?, lowest.cost))
}

/// These candidates as levers.
pub(super) fn checkpoints(step: &Step, chosen: &[usize]) -> Vec<Lever> {
    let paths = |keeps: bool| -> Vec<String> {
        let these = chosen.iter().map(|&at| &step.candidates[at]);
        these.filter(|it| it.keeps_products == keeps).map(|it| it.path.clone()).collect()
    };
    let both = [Lever::Checkpoint(paths(false)), Lever::Selective(paths(true))];
    let is_any = |lever: &Lever| match lever {
        Lever::Checkpoint(paths) | Lever::Selective(paths) => !paths.is_empty(),
        _ => false,
    };
    both.into_iter().filter(is_any).collect()
}
