//! The dearer stages: what waits for the host, rounds otherwise, or changes the training.

use diagnose::remedies::Stage;

use super::tries::Search;
use super::{Bench, Plan};
use crate::lever::{
    ACCUMULATE, AMP_BF16, AMP_FP16, FREEZE, HALF_FROZEN, Lever, OFFLOAD, OFFLOAD_OPTIMIZER, SHARD,
    of_stage,
};

/// So many GPUs are proposed where one cannot hold the state.
const GPUS: [u32; 3] = [2, 4, 8];

impl<B: Bench> Search<'_, B> {
    /// Activations on the host: alone, and of the smallest batches.
    pub(super) fn offload(&mut self, with: &[Lever]) -> Result<(), B::Error> {
        if self.wants(OFFLOAD_OPTIMIZER) {
            let state = Lever::Plain(OFFLOAD_OPTIMIZER);
            self.add(with, &[vec![state.clone()]], &[])?;
            let recomputed = self.most_recomputed(with).filter(|_| !self.is_done(2));
            if let Some((levers, again)) = recomputed {
                self.add(with, &[[levers, vec![state]].concat()], &[again])?;
            }
        }
        if !self.wants(OFFLOAD) || self.is_done(2) {
            return Ok(());
        }
        let alone = vec![Lever::Plain(OFFLOAD)];
        self.add(with, std::slice::from_ref(&alone), &[])?;
        if !self.wants(ACCUMULATE) || !self.takes_hold(ACCUMULATE) || self.is_done(2) {
            return Ok(());
        }
        let of_parts = |lever: Lever| [alone.as_slice(), &[lever]].concat();
        let both: Vec<Vec<Lever>> = self.parts().into_iter().map(of_parts).collect();
        self.first_of(with, &both, &[])
    }

    /// Numbers of fewer bits: of models that are not trained at all, then of everything.
    pub(super) fn lower_precision(&mut self, free: &[Lever]) -> Result<(), B::Error> {
        let mut with = free.to_vec();
        if self.is_asked_for(HALF_FROZEN) && self.wants(HALF_FROZEN) {
            let before = self.plans.len();
            self.add(free, &[vec![Lever::Plain(HALF_FROZEN)]], &[])?;
            with.extend(self.helpful(before, self.base.reserved));
        }
        // Those that took hold by themselves.
        let is_tried = |lever: &Lever| self.plans.iter().any(|it| it.levers == [lever.clone()]);
        let precisions: Vec<Lever> = self.precisions().into_iter().filter(is_tried).collect();
        for precision in precisions {
            let with: Vec<Lever> = with.iter().cloned().chain([precision]).collect();
            self.add(&with, &[Vec::new()], &[])?;
            if self.is_done(2) {
                return Ok(());
            }
            self.recompute(&with)?;
            // Smaller batches alone may have been enough, and do no more to the training than with this.
            if !self.is_done(3) {
                self.divide(&with)?;
            }
            if self.is_done(2) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Numbers of fewer bits: by settings of the script's own, and by the lever for this card.
    pub(super) fn precisions(&self) -> Vec<Lever> {
        let own = [AMP_BF16, AMP_FP16].into_iter().flat_map(|id| self.own(id));
        let lever = self.wants(self.wish.precision).then_some(Lever::Plain(self.wish.precision));
        own.chain(lever).collect()
    }

    /// The user's own knobs, each value alone and with as many checkpoints as help.
    pub(super) fn turn_knobs(&mut self, free: &[Lever]) -> Result<(), B::Error> {
        let recomputed = self.most_recomputed(free);
        for (name, values) in &self.wish.knobs {
            let turned: Vec<Vec<Lever>> = values
                .iter()
                .map(|value| vec![Lever::Knob { name: name.clone(), value: value.clone() }])
                .collect();
            self.add(free, &turned, &[])?;
            if let Some((levers, again)) = &recomputed {
                let with: Vec<Lever> = [free, levers].concat();
                self.add(&with, &turned, &vec![*again; turned.len()])?;
            }
        }
        Ok(())
    }

    /// Another optimizer, or fewer parameters that learn; alone and with what came lowest so far.
    pub(super) fn retrain(&mut self, free: &[Lever]) -> Result<(), B::Error> {
        // State on the host is no state of another optimizer's.
        let has_state = |plan: &&Plan| !plan.levers.contains(&Lever::Plain(OFFLOAD_OPTIMIZER));
        let lowest = self.plans.iter().filter(has_state).min_by_key(|plan| plan.peaks.reserved);
        let lowest = lowest.map(|plan| (plan.levers.clone(), plan.again));
        let recomputed = self.most_recomputed(free);
        let own = of_stage(Stage::Training).flat_map(|row| self.own(row.id));
        let levers = of_stage(Stage::Training).filter_map(Lever::of);
        let others: Vec<Lever> = own.chain(levers.filter(|it| self.wants(it.id()))).collect();
        for lever in others {
            self.add(free, &[vec![lever.clone()]], &[])?;
            if let Some((more, again)) = &recomputed {
                self.add(&[free, more].concat(), &[vec![lever.clone()]], &[*again])?;
            }
            if let Some((levers, again)) = lowest.as_ref().filter(|_| !self.is_done(4)) {
                self.add(levers, &[vec![lever]], &[*again])?;
            }
        }
        if self.is_state_bound() && self.wants(SHARD) {
            let more: Vec<Vec<Lever>> =
                GPUS.iter().map(|count| vec![Lever::Shard(*count)]).collect();
            self.first_of(&[], &more, &[])?;
        }
        if self.is_done(4) || !self.wish.allow_training || !self.wants(FREEZE) {
            return Ok(());
        }
        for part in self.look.parts.clone() {
            let lever = Lever::Freeze(vec![part]);
            self.add(free, &[vec![lever.clone()]], &[])?;
            if let Some((levers, again)) = &lowest {
                self.add(levers, &[vec![lever]], &[*again])?;
            }
        }
        Ok(())
    }
}
