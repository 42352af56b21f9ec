//! The search for a plan: levers by what they do to the training, the mildest first, each tried.
//!
//! A first look at the script as it is says which levers find something to act on and what causes the
//! peak. Then stages follow each other until one has a plan that fits: levers that compute the same;
//! checkpoints on top; smaller batches; offloading and lower precision; the user's own knobs; another
//! training, if that is allowed. Plans have one order, and neither it nor what a stage has to choose from
//! depends on the budget: so that asking for less memory does not give a higher peak.

mod dearer;
mod stages;
mod survey;
mod tries;

pub use self::survey::survey;

use std::cmp::Ordering;

pub use self::stages::most_checkpoints;
use self::tries::Search;
use crate::checkpoint::Step;
use crate::lever::{Label, Lever, OFFLOAD, OFFLOAD_OPTIMIZER, Own};
use crate::patch::{Edit, Patch};
use crate::trial::{Measured, Outcome, Target, verdict_for};
use anatomy::Peaks;

/// What a lever said when it was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fact {
    pub lever: String,
    /// Whether it took hold.
    pub applied: bool,
    pub reason: Option<String>,
    /// Where it took hold.
    pub sites: Vec<String>,
    /// File and line of the code to change.
    pub places: Vec<String>,
    /// The code to write.
    pub change: String,
    /// A BatchNorm is where it acts, which may make it change more than it does in general.
    pub meets_batch_norm: bool,
    /// Of smaller batches: the loss is a mean over unequal numbers of targets, so theirs is a mean of means.
    pub means_of_means: bool,
    /// Of smaller batches: the batch of the script.
    pub batch: Option<u32>,
    /// The change as text, where it can be written.
    pub edits: Vec<Edit>,
    /// Why some of it cannot be written, with the line.
    pub in_the_way: Vec<String>,
    /// Words behind the command that do the same.
    pub words: Vec<String>,
    /// Settings of the script's own that may do what a lever does.
    pub settings: Vec<Own>,
}

impl Fact {
    /// Whether all of it can be written.
    pub fn is_writable(&self) -> bool {
        self.in_the_way.is_empty() && !(self.edits.is_empty() && self.words.is_empty())
    }
}

/// A plan as what to write.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// It was applied to a copy, which was run.
    Patch { patch: Patch, measured: Measured },
    /// It cannot be written, or its copy does not do what the plan does; why.
    InTheWay(Vec<String>),
}

/// What came of one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Without a limit.
    pub measured: Measured,
    /// One for each lever of the plan that acts inside the script.
    pub facts: Vec<Fact>,
}

/// A root cause of the peak, as `diagnose` names it, and what may be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub title: String,
    /// Bytes that it explains.
    pub bytes: u64,
    /// Remedies: their ids and what to change; some are levers.
    pub remedies: Vec<(&'static str, String)>,
}

/// What a recorded run of a plan shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// Of the peak, the largest first.
    pub causes: Vec<Cause>,
    /// What modules save; `None` if that could not be recorded.
    pub step: Option<Step>,
    /// What levers said that were only asked whether they find something to act on.
    pub facts: Vec<Fact>,
    /// Bytes of the weights.
    pub weights: u64,
    /// Bytes of weights, gradients and the optimizer's state: no smaller batch makes them less.
    pub state: u64,
    /// Bytes that are kept for the backward pass.
    pub activations: u64,
    /// Modules that own much of the peak, the largest first.
    pub parts: Vec<String>,
}

pub trait Bench {
    /// Why nothing can be tried at all.
    type Error;

    /// Each without a limit of memory.
    fn try_all(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Tried>, Self::Error>;

    /// Each on the card itself.
    fn on_card(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Measured>, Self::Error>;

    /// A plan as a patch, which was applied to a copy and run on the card itself.
    fn write(&mut self, plan: &Plan) -> Result<Written, Self::Error>;

    /// A recorded run of a plan; beside it, levers are asked whether they find something to act on.
    fn look(&mut self, plan: &[Lever], asked: &[Lever]) -> Result<Look, Self::Error>;
}

/// How fast the card is, at the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// Operations per second.
    pub flops: f64,
    /// Bytes per second from its own memory.
    pub bandwidth: f64,
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wish {
    pub card: Target,
    /// To compare operations with bytes that are moved.
    pub speeds: Speeds,
    /// Only these levers; all if empty.
    pub only: Vec<String>,
    /// Whether the training may change.
    pub allow_training: bool,
    /// Knobs of the user's and their values, from the mildest on.
    pub knobs: Vec<(String, Vec<String>)>,
    /// The lever of lower precision for this card.
    pub precision: &'static str,
    /// Bytes to leave free.
    pub headroom: u64,
}

/// A plan that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub levers: Vec<Lever>,
    /// The strongest of their labels.
    pub label: Label,
    /// Measured: on the card if that was needed to decide, else without a limit.
    pub peaks: Peaks,
    /// Whether it fits the card.
    pub outcome: Outcome,
    /// Time of a step, compared with the script as it is; modelled from counted operations and bytes and
    /// the card's speeds.
    pub cost_ratio: f64,
    /// Of that, operations of the forward pass that are done again.
    pub again: f64,
    /// What the levers said.
    pub facts: Vec<Fact>,
    /// Without a limit it takes more than the card has: there PyTorch gives cached memory back.
    pub by_retries: bool,
    /// As what to write, if that was tried; then the peaks are those of the copy.
    pub written: Option<Written>,
}

impl Plan {
    /// Whether its levers said how each of them is written.
    fn is_writable(&self) -> bool {
        let is_written = |lever: &Lever| match lever {
            Lever::Knob { .. } | Lever::Allocator(_) | Lever::Own(_) => true,
            _ => self.facts.iter().any(|fact| fact.lever == lever.id() && fact.is_writable()),
        };
        self.levers.iter().all(is_written)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The script as it is.
    pub baseline: Measured,
    /// Whether that fits the card.
    pub as_it_is: Outcome,
    /// Causes of its peak, if it does not.
    pub causes: Vec<Cause>,
    /// In the order in which they would be chosen.
    pub plans: Vec<Plan>,
    /// The first that fits.
    pub chosen: Option<usize>,
    /// Where none may be chosen: the first that fits, but changes the training, which was not allowed.
    pub proposed: Option<usize>,
    /// The lowest reserved peak of any plan that does not fit.
    pub tightest: Option<usize>,
    /// Bytes of weights, gradients and the optimizer's state at the peak.
    pub state: u64,
    /// Levers that could not be applied, and why.
    pub not_applicable: Vec<(String, String)>,
}

/// Searches; the answer has every plan that was tried.
pub fn search<B: Bench>(bench: &mut B, wish: &Wish) -> Result<Answer, B::Error> {
    let mut baseline = bench.try_all(&[Vec::new()])?.swap_remove(0).measured;
    let mut search = Search::new(bench, wish, baseline.peaks);
    let decided = verdict_for(&wish.card, &baseline);
    let as_it_is = match decided {
        Some(outcome) => outcome,
        None => {
            let on_card = search.bench.on_card(&[Vec::new()])?.swap_remove(0);
            if on_card.outcome.fits() {
                baseline = on_card.clone();
            }
            on_card.outcome
        }
    };
    if !as_it_is.fits() && baseline.outcome.fits() {
        search.stages()?;
        search.simplify()?;
    }
    let mut plans = std::mem::take(&mut search.plans);
    plans.sort_by(|a, b| wish.is_tight(a).cmp(&wish.is_tight(b)).then(order(a, b)));
    let chosen = written(search.bench, wish, &mut plans)?;
    let Search { refused, look, .. } = search;
    let proposed = plans.iter().position(|plan| plan.outcome.fits());
    Ok(Answer {
        baseline,
        as_it_is,
        causes: look.causes,
        chosen,
        proposed: proposed.filter(|_| chosen.is_none()),
        tightest: tightest(&plans),
        plans,
        state: look.state,
        not_applicable: refused,
    })
}

/// The lowest peak of those that do not fit; of all, if all do.
fn tightest(plans: &[Plan]) -> Option<usize> {
    let lowest = |index: &usize| (plans[*index].outcome.fits(), plans[*index].peaks.reserved);
    (0..plans.len()).min_by_key(lowest)
}

impl Wish {
    /// Whether it leaves less than the headroom, or goes through only since cached memory is given back.
    fn is_tight(&self, plan: &Plan) -> bool {
        let room = self.card.usable_bytes.saturating_sub(self.headroom);
        plan.by_retries || room < plan.peaks.reserved
    }

    /// Whether it fits and changes the training only if that is allowed.
    fn may_take(&self, plan: &Plan) -> bool {
        // Other GPUs are not this one.
        let needs_more = plan.levers.iter().any(|lever| matches!(lever, Lever::Shard(_)));
        let retrains = plan.levers.iter().any(Lever::retrains);
        plan.outcome.fits() && !needs_more && (self.allow_training || !retrains)
    }
}

/// Plans that are written at the most, until the copy of one fits.
const WRITTEN: usize = 3;

/// The first that fits as what its patch does; of those that go as far, one that can be written comes first.
fn written<B: Bench>(
    bench: &mut B,
    wish: &Wish,
    plans: &mut [Plan],
) -> Result<Option<usize>, B::Error> {
    let Some(first) = plans.iter().position(|plan| wish.may_take(plan)) else { return Ok(None) };
    let furthest = class(&plans[first]);
    let is_candidate = |&at: &usize| wish.may_take(&plans[at]) && class(&plans[at]) <= furthest;
    let candidates: Vec<usize> = (first..plans.len()).filter(is_candidate).take(WRITTEN).collect();
    let mut chosen = None;
    for at in candidates {
        let written = bench.write(&plans[at])?;
        let plan = &mut plans[at];
        let fits = match &written {
            Written::Patch { measured, .. } => {
                plan.peaks = measured.peaks;
                plan.outcome = measured.outcome.clone();
                measured.outcome.fits()
            }
            Written::InTheWay(_) => false,
        };
        plan.written = Some(written);
        if fits {
            return Ok(Some(at));
        }
        chosen = chosen.or(plan.outcome.fits().then_some(at));
    }
    Ok(chosen.or_else(|| plans.iter().position(|plan| wish.may_take(plan))))
}

/// How far a plan goes, in classes. What computes the same comes first, and in there what is cheapest. Then
/// smaller batches, which ask for another loop; what waits for the bus or rounds otherwise; other
/// statistics; another training.
fn class(plan: &Plan) -> u8 {
    let waits = [OFFLOAD, OFFLOAD_OPTIMIZER].map(Lever::Plain);
    let offloads = plan.levers.iter().any(|lever| waits.contains(lever));
    let divides = plan.levers.iter().any(Lever::divides);
    match plan.label {
        _ if plan.levers.iter().any(|lever| matches!(lever, Lever::Shard(_))) => 5,
        Label::Exact | Label::NumericallyEqual if offloads => 2,
        Label::Exact | Label::NumericallyEqual => u8::from(divides),
        Label::ChangesNumerics => 2,
        Label::ChangesStatistics => 3,
        Label::ChangesTraining => 4,
        Label::ChangesFunction => 5,
    }
}

/// How many GPUs a plan is for.
fn gpus(plan: &Plan) -> u32 {
    let counts =
        plan.levers.iter().map(|lever| if let Lever::Shard(count) = lever { *count } else { 1 });
    counts.max().unwrap_or(1)
}

/// The order in which plans would be chosen: the mildest, then the cheapest, then the simplest.
fn order(a: &Plan, b: &Plan) -> Ordering {
    let has_knob =
        |plan: &Plan| plan.levers.iter().any(|lever| matches!(lever, Lever::Knob { .. }));
    // Another optimizer trains what was to be trained; frozen parts are not.
    let freezes = |plan: &Plan| plan.levers.iter().any(|it| matches!(it, Lever::Freeze(_)));
    class(a)
        .cmp(&class(b))
        .then(freezes(a).cmp(&freezes(b)))
        .then(gpus(a).cmp(&gpus(b)))
        .then(a.cost_ratio.total_cmp(&b.cost_ratio))
        .then(a.label.cmp(&b.label))
        .then(a.levers.len().cmp(&b.levers.len()))
        .then(has_knob(a).cmp(&has_knob(b)))
        .then(match has_knob(a) {
            // No further than needed: of a knob's values the one that takes most memory.
            true => b.peaks.reserved.cmp(&a.peaks.reserved),
            false => a.peaks.reserved.cmp(&b.peaks.reserved),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(levers: &[Lever], label: Label, cost_ratio: f64) -> Plan {
        let (levers, peaks) = (levers.to_vec(), Peaks::default());
        let outcome = Outcome::Fits;
        Plan {
            levers,
            label,
            peaks,
            outcome,
            cost_ratio,
            again: 0.0,
            facts: Vec::new(),
            by_retries: false,
            written: None,
        }
    }

    /// Whatever a change costs, one that does less to the training comes before it.
    #[test]
    fn the_mildest_comes_first_and_then_the_cheapest() {
        let plain = |id: &'static str| [Lever::Plain(id)];
        let ordered = [
            plan(&plain("no-foreach"), Label::Exact, 1.0),
            plan(&plain("fused-attention"), Label::NumericallyEqual, 1.0),
            plan(&[Lever::Checkpoint(Vec::new())], Label::Exact, 1.3),
            plan(&[Lever::Accumulate(2)], Label::NumericallyEqual, 1.0),
            plan(&plain("amp-bf16"), Label::ChangesNumerics, 1.0),
            plan(&plain("offload"), Label::Exact, 3.0),
            plan(&[Lever::Accumulate(2)], Label::ChangesStatistics, 1.0),
            plan(&plain("sgd"), Label::ChangesTraining, 1.0),
        ];
        let mut shuffled = ordered.to_vec();
        shuffled.reverse();
        shuffled.sort_by(order);
        assert_eq!(shuffled, ordered);
    }
}
