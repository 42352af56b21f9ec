//! A search on its way: trying plans, keeping those that took hold, and knowing when it is enough.

use diagnose::remedies::Row;

use super::{Bench, Fact, Look, Plan, Tried, Wish, class};
use crate::lever::{AMP_BF16, Label, Lever, OFFLOAD, OFFLOAD_OPTIMIZER, OWN, label};
use crate::trial::{Measured, Outcome, verdict_for};
use anatomy::Peaks;

/// A forward pass is about a third of a step: the backward pass takes two matrix products for each of its one.
const PASSES: f64 = 3.0;

/// Bytes per second between card and host: what PCIe 4.0 gives on 16 lanes, less its overhead. Assumed.
const BUS: f64 = 25e9;

/// Bytes per second of a host's memory: two channels of DDR5. Assumed.
const HOST: f64 = 60e9;

/// Whether a lever changes more of this script than it does in general.
fn is_more(fact: &Fact) -> bool {
    fact.meets_batch_norm || fact.means_of_means
}

/// The strongest label of a plan's levers, as they found this script.
fn strongest(levers: &[Lever], facts: &[Fact]) -> Label {
    let meets = |lever: &Lever| facts.iter().any(|fact| fact.lever == lever.id() && is_more(fact));
    levers.iter().map(|lever| label(lever, meets(lever))).max().unwrap_or(Label::Exact)
}

/// Of so many choices, each with a lower peak than the one before, the first that fits: two at a time, by
/// thirds. If the last does not fit, two others show how far the way is.
pub(super) fn first_that_fits<E>(
    count: usize,
    mut fits: impl FnMut(&[usize]) -> Result<Vec<bool>, E>,
) -> Result<(), E> {
    if count == 0 {
        return Ok(());
    }
    let (mut low, mut high) = (0, count - 1);
    let ends = if count == 1 { vec![0] } else { vec![high, (count - 1) / 2] };
    let found = fits(&ends)?;
    if !found[0] {
        return Ok(());
    }
    match found.get(1) {
        Some(true) => high = (count - 1) / 2,
        Some(false) => low = (count - 1) / 2 + 1,
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

/// What has been tried, and what is known.
pub(super) struct Search<'a, B: Bench> {
    pub(super) bench: &'a mut B,
    pub(super) wish: &'a Wish,
    pub(super) plans: Vec<Plan>,
    /// Levers that did not take hold, and why.
    pub(super) refused: Vec<(String, String)>,
    /// Of the script as it is.
    pub(super) base: Peaks,
    /// At the script as it is.
    pub(super) look: Look,
}

impl<'a, B: Bench> Search<'a, B> {
    pub(super) fn new(bench: &'a mut B, wish: &'a Wish, base: Peaks) -> Search<'a, B> {
        let (plans, refused, look) = (Vec::new(), Vec::new(), Look::default());
        Search { bench, wish, plans, refused, base, look }
    }

    pub(super) fn wants(&self, lever: &str) -> bool {
        self.wish.only.is_empty() || self.wish.only.iter().any(|wanted| wanted == lever)
    }

    /// Settings of the script's own that are like this lever, as far as the card can do what they say.
    pub(super) fn own(&self, like: &str) -> Vec<Lever> {
        let is_wanted = self.wants(OWN) && (like != AMP_BF16 || self.wish.precision == AMP_BF16);
        let settings = self.look.facts.iter().flat_map(|fact| &fact.settings);
        let alike = settings.filter(|own| is_wanted && own.like == like);
        alike.cloned().map(Lever::Own).collect()
    }

    /// Whether it may find something to act on; what was not asked may.
    pub(super) fn takes_hold(&self, lever: &str) -> bool {
        self.look.facts.iter().all(|fact| fact.lever != lever || fact.applied)
    }

    /// Whether it is wanted, and asked for if it must be.
    pub(super) fn is_due(&self, row: &Row) -> bool {
        let waits = row.lever.is_some_and(|lever| lever.if_asked);
        self.wants(row.id) && (!waits || self.is_asked_for(row.id))
    }

    /// Whether a cause of the peak asks for it, or the user does.
    pub(super) fn is_asked_for(&self, lever: &str) -> bool {
        let mut remedies = self.look.causes.iter().flat_map(|cause| &cause.remedies);
        self.wish.only.iter().any(|wanted| wanted == lever) || remedies.any(|row| row.0 == lever)
    }

    /// Whether a plan fits that goes no further than this class: later stages go further.
    pub(super) fn is_done(&self, furthest: u8) -> bool {
        self.plans.iter().any(|plan| self.is_enough(plan, furthest))
    }

    /// The same of a plan that can be written.
    pub(super) fn is_done_in_writing(&self, furthest: u8) -> bool {
        self.plans.iter().any(|plan| self.is_enough(plan, furthest) && plan.is_writable())
    }

    fn is_enough(&self, plan: &Plan, furthest: u8) -> bool {
        plan.outcome.fits() && class(plan) <= furthest && !self.wish.is_tight(plan)
    }

    /// Whether exactly this was tried and fits, with headroom.
    pub(super) fn did_fit(&self, levers: &[Lever]) -> bool {
        let is_it = |plan: &&Plan| plan.outcome.fits() && plan.levers == levers;
        self.plans.iter().any(|plan| is_it(&plan) && !self.wish.is_tight(plan))
    }

    /// Time of a step beside that of the script as it is: operations that are done again, what small
    /// batches read and write once more, and what goes over the bus.
    pub(super) fn cost(&self, levers: &[Lever], again: f64) -> f64 {
        let Some(forward) = self.look.step.as_ref().map(|step| step.forward_cost) else {
            return 1.0;
        };
        let speeds = self.wish.speeds;
        let mut more = again;
        for lever in levers {
            more += match lever {
                Lever::Accumulate(parts) => self.further(*parts),
                Lever::Own(own) => self.further(own.parts),
                // Gradients go and weights come; the host's step reads and writes seven numbers for each.
                Lever::Plain(OFFLOAD_OPTIMIZER) => {
                    let weights = self.look.weights as f64;
                    (2.0 * weights / BUS + 7.0 * weights / HOST) * speeds.flops
                }
                Lever::Plain(OFFLOAD) => 2.0 * self.look.activations as f64 * speeds.flops / BUS,
                _ => 0.0,
            };
        }
        1.0 + more / (PASSES * forward)
    }

    /// Operations in the time of so many passes but the first: each reads the weights twice, and reads and writes the
    /// gradients.
    fn further(&self, parts: u32) -> f64 {
        let bytes = 4.0 * self.look.weights as f64 * f64::from(parts.saturating_sub(1));
        bytes * self.wish.speeds.flops / self.wish.speeds.bandwidth
    }

    /// Levers that did not take hold, and those with which the script fails: by the last one, which was added.
    fn note_refusals(&mut self, levers: &[Lever], measured: &Measured, facts: &[Fact]) {
        match &measured.outcome {
            Outcome::Failed(why) => {
                let id = levers.last().map_or("", Lever::id);
                let why = why.lines().next().unwrap_or_default();
                self.refuse(id, &format!("the script fails with it: {why}"));
            }
            Outcome::NotRun => {}
            _ => self.note_facts(facts),
        }
    }

    pub(super) fn note_facts(&mut self, facts: &[Fact]) {
        for fact in facts.iter().filter(|fact| !fact.applied) {
            self.refuse(&fact.lever, fact.reason.as_deref().unwrap_or_default());
        }
    }

    fn refuse(&mut self, lever: &str, reason: &str) {
        let refusal = (lever.to_owned(), reason.to_owned());
        let mut settings = self.look.facts.iter().flat_map(|fact| &fact.settings);
        let is_wanted = self.wants(lever) || settings.any(|own| own.name == lever);
        if is_wanted && !self.refused.contains(&refusal) {
            self.refused.push(refusal);
        }
    }

    /// Tries `with` and each of `plans` on top, which do so many operations again; keeps those of which every
    /// lever took hold.
    pub(super) fn add(
        &mut self,
        with: &[Lever],
        plans: &[Vec<Lever>],
        again: &[f64],
    ) -> Result<(), B::Error> {
        let whole: Vec<Vec<Lever>> = plans.iter().map(|plan| [with, plan].concat()).collect();
        let new: Vec<bool> =
            whole.iter().map(|levers| self.plans.iter().all(|p| p.levers != *levers)).collect();
        let keep = |index: &usize| new[*index];
        let kept: Vec<usize> = (0..whole.len()).filter(keep).collect();
        let whole: Vec<Vec<Lever>> = kept.iter().map(|&index| whole[index].clone()).collect();
        let (mut tried, mut undecided) = (Vec::new(), Vec::new());
        let results = self.bench.try_all(&whole)?;
        for ((levers, result), &index) in whole.iter().zip(results).zip(&kept) {
            let Tried { measured, facts } = result;
            self.note_refusals(levers, &measured, &facts);
            if facts.iter().any(|fact| !fact.applied) || !measured.outcome.fits() {
                continue;
            }
            let decided = verdict_for(&self.wish.card, &measured);
            if decided.is_none() {
                undecided.push(tried.len());
            }
            let again = again.get(index).copied().unwrap_or(0.0);
            tried.push(Plan {
                levers: levers.clone(),
                label: strongest(levers, &facts),
                peaks: measured.peaks,
                outcome: decided.clone().unwrap_or(Outcome::DoesNotFit),
                cost_ratio: self.cost(levers, again),
                again,
                facts,
                by_retries: decided.is_none(),
                written: None,
            });
        }
        let on_card: Vec<Vec<Lever>> =
            undecided.iter().map(|&index| tried[index].levers.clone()).collect();
        let mut not_run = Vec::new();
        for (&index, measured) in undecided.iter().zip(self.bench.on_card(&on_card)?) {
            if measured.outcome.fits() {
                tried[index].peaks = measured.peaks;
            }
            not_run.extend((measured.outcome == Outcome::NotRun).then_some(index));
            tried[index].outcome = measured.outcome;
        }
        // Of these nothing is known.
        let decided = tried.into_iter().enumerate().filter(|(index, _)| !not_run.contains(index));
        self.plans.extend(decided.map(|(_, plan)| plan));
        Ok(())
    }
}
