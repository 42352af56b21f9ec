//! The search for a plan: levers by what they do to the training, the mildest first, each tried.
//!
//! Stages follow each other until one has a plan that fits: levers that cost nothing, checkpoints; the
//! same with levers that are numerically equal; offloading and lower precision; the user's own knobs;
//! another training, if that is allowed. Plans have one order, and neither it nor what a stage has to
//! choose from depends on the budget: so that asking for less memory does not give a higher peak.

mod stages;

use std::cmp::Ordering;

use self::stages::Search;
use crate::checkpoint::Step;
use crate::lever::{Label, Lever};
use crate::trial::{Card, Measured, Peaks, Verdict, verdict_for};

/// What a lever said when it was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fact {
    /// Its id.
    pub lever: String,
    /// Whether it took hold.
    pub applied: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Where it took hold.
    pub sites: Vec<String>,
    /// File and line of the code to change.
    pub places: Vec<String>,
    /// The code to write.
    pub change: String,
    /// What it does to this training, which may be more than in general.
    pub label: Option<Label>,
}

/// What came of one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Without a limit.
    pub measured: Measured,
    /// One for each lever of the plan that acts inside the script.
    pub facts: Vec<Fact>,
}

/// Tries plans.
pub trait Bench {
    /// Why nothing can be tried at all.
    type Error;

    /// Each without a limit of memory.
    fn try_all(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Tried>, Self::Error>;

    /// Each on the card itself.
    fn on_card(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Measured>, Self::Error>;

    /// What modules save under a plan; `None` if it could not be recorded.
    fn step(&mut self, plan: &[Lever]) -> Result<Option<Step>, Self::Error>;
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The card.
    pub card: Card,
    /// Only these levers; all if empty.
    pub only: Vec<String>,
    /// Whether the training may change.
    pub allow_training: bool,
    /// Knobs of the user's and their values, from the mildest on.
    pub knobs: Vec<(String, Vec<String>)>,
    /// The lever of lower precision for this card.
    pub precision: &'static str,
}

/// A plan that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its levers.
    pub levers: Vec<Lever>,
    /// The strongest of their labels.
    pub label: Label,
    /// Measured: on the card if that was needed to decide, else without a limit.
    pub peaks: Peaks,
    /// Whether it fits the card.
    pub fits: bool,
    /// Operations of a step, compared with the script as it is; modelled from counted operations and bytes.
    pub cost_ratio: f64,
    /// Whether activations travel to the host and back.
    pub offloads: bool,
    /// What the levers said.
    pub facts: Vec<Fact>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The script as it is.
    pub baseline: Measured,
    /// Whether that fits.
    pub fits: bool,
    /// In the order in which they would be chosen.
    pub plans: Vec<Plan>,
    /// The first that fits.
    pub chosen: Option<usize>,
    /// The lowest reserved peak of any plan.
    pub tightest: Option<usize>,
    /// Levers that could not be applied, and why.
    pub not_applicable: Vec<(String, String)>,
}

/// Searches; the answer has every plan that was tried.
pub fn search<B: Bench>(bench: &mut B, wish: &Wish) -> Result<Answer, B::Error> {
    let mut baseline = bench.try_all(&[Vec::new()])?.swap_remove(0).measured;
    let mut search =
        Search { bench, wish, plans: Vec::new(), refused: Vec::new(), base: baseline.peaks };
    let mut fits = matches!(&baseline.verdict, Verdict::Fits)
        && verdict_for(&wish.card, &baseline.peaks) == Some(Verdict::Fits);
    if baseline.verdict == Verdict::Fits && verdict_for(&wish.card, &baseline.peaks).is_none() {
        let on_card = search.bench.on_card(&[Vec::new()])?.swap_remove(0);
        fits = on_card.verdict == Verdict::Fits;
        if fits {
            baseline = on_card;
        }
    }
    if !fits && baseline.verdict == Verdict::Fits {
        search.stages()?;
    }
    let Search { mut plans, refused, .. } = search;
    plans.sort_by(order);
    let chosen = plans.iter().position(|plan| plan.fits);
    let lowest = |index: &usize| plans[*index].peaks.reserved;
    let tightest = (0..plans.len()).min_by_key(lowest);
    Ok(Answer { baseline, fits, plans, chosen, tightest, not_applicable: refused })
}

/// The order in which plans would be chosen: the mildest, then the cheapest, then the simplest. What waits
/// for the bus comes after what is numerically equal, for it may be many times slower.
fn order(a: &Plan, b: &Plan) -> Ordering {
    let has_knob =
        |plan: &Plan| plan.levers.iter().any(|lever| matches!(lever, Lever::Knob { .. }));
    let rank = |plan: &Plan| {
        if plan.offloads { plan.label.max(Label::ChangesNumerics) } else { plan.label }
    };
    rank(a)
        .cmp(&rank(b))
        .then(a.offloads.cmp(&b.offloads))
        .then(a.cost_ratio.total_cmp(&b.cost_ratio))
        .then(a.levers.len().cmp(&b.levers.len()))
        .then(has_knob(a).cmp(&has_knob(b)))
        .then(match has_knob(a) {
            // No further than needed: of a knob's values the one that takes most memory.
            true => b.peaks.reserved.cmp(&a.peaks.reserved),
            false => a.peaks.reserved.cmp(&b.peaks.reserved),
        })
}
