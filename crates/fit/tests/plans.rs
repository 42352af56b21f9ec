//! The search for a plan against a script whose peaks are known: what is tried, in which order, and monotony.

use fit::checkpoint::{Absence, Candidate, Step};
use fit::lever::Own;
use fit::patch::Patch;
use fit::plan::{Answer, Bench, Cause, Fact, Look, Plan, Speeds, Tried, Wish, Written, search};
use fit::{Label, Lever, Measured, Outcome, Peaks, Target};

/// Ten blocks of 1000 bytes on top of 2000; no-foreach saves 300; precision halves the blocks; channels-last
/// saves 100.
#[derive(Default)]
struct Script {
    tried: Vec<Vec<Lever>>,
    usable: u64,
    /// Its batch size, if it can be divided.
    batch: Option<u32>,
    /// Of its peak.
    causes: Vec<Cause>,
    /// What cuDNN takes without a limit and does without on the card.
    workspace: u64,
    /// Whether its blocks have a BatchNorm.
    has_batch_norm: bool,
    /// Levers that have no patch.
    unwritable: Vec<&'static str>,
    /// Bytes to leave free.
    headroom: u64,
    /// Of weights, gradients and the optimizer; other optimizers then find something to act on.
    state: u64,
    allow_training: bool,
    /// Settings that the script has.
    settings: Vec<Own>,
}

const BLOCKS: usize = 10;

impl Script {
    fn peak(&self, plan: &[Lever]) -> u64 {
        let block = if plan.contains(&Lever::Plain("amp-bf16")) { 500 } else { 1000 };
        let (mut blocks, mut rest, mut eighths, mut passes) = (BLOCKS as u64, 2000, 8, 1);
        for lever in plan {
            match lever {
                Lever::Checkpoint(modules) => blocks -= modules.len() as u64 * 9 / 10,
                Lever::Plain("no-foreach") => rest -= 300,
                Lever::Plain("channels-last") => rest -= 100,
                Lever::Plain("adafactor") => rest -= 1500,
                Lever::Freeze(_) => rest -= 1600,
                Lever::Own(own) if own.like == "gradient-checkpointing" => blocks -= 9,
                Lever::Own(own) => passes = u64::from(own.parts),
                Lever::Accumulate(parts) => passes = u64::from(*parts),
                Lever::Knob { value, .. } => eighths = value.parse::<u64>().unwrap(),
                _ => {}
            }
        }
        rest + blocks * block * eighths / 8 / passes
    }

    /// A few levers find something to act on.
    fn fact(&self, lever: &Lever) -> Fact {
        let applied = match lever.id() {
            "no-foreach" | "checkpoint" | "amp-bf16" | "channels-last" => true,
            "accumulate" => self.batch.is_some(),
            "adafactor" | "freeze" => 0 < self.state,
            "own-setting" => !self.settings.is_empty(),
            id => self.settings.iter().any(|own| own.name == id),
        };
        Fact {
            lever: lever.id().to_owned(),
            applied,
            reason: Some("absent".to_owned()),
            batch: self.batch,
            meets_batch_norm: self.has_batch_norm,
            words: match self.unwritable.contains(&lever.id()) {
                true => Vec::new(),
                false => vec!["--so".to_owned()],
            },
            settings: match lever.id() {
                "own-setting" => self.settings.clone(),
                _ => Vec::new(),
            },
            ..Fact::default()
        }
    }

    fn unlimited(&self, plan: &[Lever]) -> Measured {
        measured(Outcome::Fits, self.peak(plan) + self.workspace)
    }

    fn on_card(&self, plan: &[Lever]) -> Measured {
        match self.peak(plan) {
            needed if self.usable < needed => measured(Outcome::DoesNotFit, self.usable),
            needed => measured(Outcome::Fits, needed),
        }
    }
}

fn measured(outcome: Outcome, bytes: u64) -> Measured {
    Measured { outcome, peaks: Peaks { allocated: bytes, reserved: bytes, device: bytes } }
}

impl Bench for Script {
    type Error = ();

    fn try_all(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Tried>, ()> {
        self.tried.extend(plans.iter().cloned());
        let is_inside = |lever: &&Lever| !matches!(lever, Lever::Knob { .. });
        let tried = |plan: &Vec<Lever>| Tried {
            measured: self.unlimited(plan),
            facts: plan.iter().filter(is_inside).map(|lever| self.fact(lever)).collect(),
        };
        Ok(plans.iter().map(tried).collect())
    }

    fn on_card(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Measured>, ()> {
        Ok(plans.iter().map(|plan| Script::on_card(self, plan)).collect())
    }

    fn write(&mut self, plan: &Plan) -> Result<Written, ()> {
        if plan.levers.iter().any(|lever| self.unwritable.contains(&lever.id())) {
            return Ok(Written::InTheWay(vec!["train.py:7: no".to_owned()]));
        }
        let measured = Script::on_card(self, &plan.levers);
        Ok(Written::Patch { patch: Patch::default(), measured })
    }

    fn look(&mut self, plan: &[Lever], asked: &[Lever]) -> Result<Look, ()> {
        let top = self.peak(plan);
        let alive = (0..=BLOCKS as u64).map(|block| top - (BLOCKS as u64 - block) * 100).collect();
        let candidate = |index: usize| Candidate {
            path: format!("blocks.{index}"),
            class: "Block".to_owned(),
            keeps_products: false,
            operations: 10,
            cost: 10.0,
            absences: vec![Absence { from: index, to: BLOCKS + 1, bytes: 90 }],
        };
        let candidates = (0..BLOCKS).map(candidate).collect();
        let step = Some(Step { alive, candidates, forward_cost: 100.0 });
        let facts = asked.iter().map(|lever| self.fact(lever)).collect();
        let (causes, parts) = (self.causes.clone(), vec!["blocks".to_owned()]);
        Ok(Look { step, facts, causes, parts, state: self.state, ..Look::default() })
    }
}

fn fit(usable: u64, knobs: &[(&str, &[&str])]) -> (Answer, Vec<Vec<Lever>>) {
    fit_script(Script { usable, ..Script::default() }, knobs)
}

fn fit_script(mut script: Script, knobs: &[(&str, &[&str])]) -> (Answer, Vec<Vec<Lever>>) {
    let wish = Wish {
        card: Target {
            name: "card".into(),
            usable_bytes: script.usable,
            context_bytes: 0,
            kind: 0,
        },
        speeds: Speeds { flops: 1.0, bandwidth: 1.0 },
        only: Vec::new(),
        allow_training: script.allow_training,
        knobs: knobs
            .iter()
            .map(|(name, values)| {
                ((*name).to_owned(), values.iter().map(|v| (*v).to_owned()).collect())
            })
            .collect(),
        precision: "amp-bf16",
        headroom: script.headroom,
    };
    let answer = search(&mut script, &wish).unwrap();
    (answer, script.tried)
}

fn chosen(answer: &Answer) -> &fit::plan::Plan {
    &answer.plans[answer.chosen.unwrap()]
}

#[test]
fn what_fits_as_it_is_needs_no_plan() {
    let (answer, tried) = fit(12_000, &[]);
    assert!(answer.as_it_is.fits() && answer.plans.is_empty());
    assert_eq!(tried, [Vec::new()]);
}

#[test]
fn the_mildest_plan_is_taken() {
    let (answer, _) = fit(11_700, &[]);
    assert_eq!(chosen(&answer).levers, [Lever::Plain("no-foreach")]);
    let (answer, _) = fit(6_000, &[]);
    let plan = chosen(&answer);
    assert_eq!((plan.label, plan.peaks.reserved <= 6_000), (Label::Exact, true));
    assert!(plan.levers.iter().any(|lever| matches!(lever, Lever::Checkpoint(_))));
    let (answer, _) = fit(2_500, &[]);
    assert_eq!(chosen(&answer).label, Label::ChangesNumerics);
}

/// The milder plan fits, but hardly.
#[test]
fn what_leaves_no_headroom_is_taken_only_where_nothing_else_fits() {
    let with =
        |headroom: u64| fit_script(Script { usable: 11_700, headroom, ..Script::default() }, &[]).0;
    assert_eq!(chosen(&with(0)).levers, [Lever::Plain("no-foreach")]);
    let roomy = with(500);
    assert!(chosen(&roomy).peaks.reserved <= 11_200, "{:?}", chosen(&roomy));
    assert!(roomy.plans.iter().any(|plan| plan.levers == [Lever::Plain("no-foreach")]));
    let full = with(11_000);
    assert!(chosen(&full).outcome.fits(), "without any headroom is better than nothing");
}

#[test]
fn of_plans_that_go_as_far_one_that_can_be_written_is_taken() {
    let unwritable = vec!["no-foreach"];
    let script = Script { usable: 11_700, unwritable, ..Script::default() };
    let (answer, _) = fit_script(script, &[]);
    assert!(
        !matches!(chosen(&answer).written, Some(Written::InTheWay(_))),
        "{:?}",
        chosen(&answer)
    );
    let unwritable = vec!["no-foreach", "channels-last", "checkpoint"];
    let script = Script { usable: 11_700, unwritable, ..Script::default() };
    let (answer, _) = fit_script(script, &[]);
    let why = vec!["train.py:7: no".to_owned()];
    assert_eq!(chosen(&answer).written, Some(Written::InTheWay(why)));
}

#[test]
fn what_did_not_take_hold_is_no_plan() {
    let (answer, _) = fit(1_000, &[]);
    assert_eq!(answer.chosen, None);
    assert!(answer.tightest.is_some());
    let refused: Vec<&str> = answer.not_applicable.iter().map(|row| row.0.as_str()).collect();
    assert!(refused.contains(&"zero-grad") && refused.contains(&"offload"), "{refused:?}");
    for plan in &answer.plans {
        assert!(plan.levers.iter().all(|lever| !refused.contains(&lever.id())), "{plan:?}");
    }
}

#[test]
fn knobs_come_last_and_are_turned_no_further_than_needed() {
    let (answer, _) = fit(1_900, &[("batch", &["4", "2", "1"])]);
    let plan = chosen(&answer);
    assert!(plan.levers.iter().any(|lever| matches!(lever, Lever::Knob { .. })), "{plan:?}");
    assert_eq!(plan.label, Label::ChangesTraining);
}

#[test]
fn asking_for_less_memory_never_gives_a_higher_peak() {
    let mut last = u64::MAX;
    for usable in (4..32).rev().map(|number| 397 * number) {
        let (answer, _) = fit(usable, &[("batch", &["4", "2", "1"])]);
        let peak = match answer.chosen {
            Some(index) => answer.plans[index].peaks.reserved,
            None if answer.as_it_is.fits() => answer.baseline.peaks.reserved,
            None => continue,
        };
        assert!(peak <= usable && peak <= last, "{usable}: {peak} after {last}");
        last = peak;
    }
}

#[test]
fn a_batch_is_divided_no_further_than_needed() {
    let parts = |usable: u64| {
        let script = Script { usable, batch: Some(48), ..Script::default() };
        let (answer, _) = fit_script(script, &[]);
        let plan = chosen(&answer);
        assert!(plan.label <= Label::NumericallyEqual, "{plan:?}");
        plan.levers.iter().find_map(|lever| match lever {
            Lever::Accumulate(parts) => Some(*parts),
            _ => None,
        })
    };
    // Checkpoints ask for no other loop, and go down to 2700.
    assert_eq!(parts(2_700), None);
    assert_eq!(parts(2_699), Some(16));
}

/// Their rows say what they do to it.
#[test]
fn batch_norm_makes_some_levers_change_more() {
    let labels = |has_batch_norm: bool| {
        let script = Script { usable: 1, batch: Some(8), has_batch_norm, ..Script::default() };
        let (answer, _) = fit_script(script, &[]);
        let label = |is_wanted: fn(&Lever) -> bool| {
            let alone = |plan: &&Plan| {
                plan.levers.iter().all(|it| is_wanted(it) || *it == Lever::Plain("no-foreach"))
            };
            answer.plans.iter().filter(alone).map(|plan| plan.label).max().unwrap()
        };
        [
            label(|lever| matches!(lever, Lever::Checkpoint(_))),
            label(|lever| matches!(lever, Lever::Accumulate(_))),
            label(|lever| *lever == Lever::Plain("amp-bf16")),
        ]
    };
    assert_eq!(labels(false), [Label::Exact, Label::NumericallyEqual, Label::ChangesNumerics]);
    let with_norm = [Label::NumericallyEqual, Label::ChangesStatistics, Label::ChangesNumerics];
    assert_eq!(labels(true), with_norm);
}

#[test]
fn some_levers_are_tried_only_if_a_cause_asks_for_them() {
    let is_tried =
        |tried: &[Vec<Lever>]| tried.iter().any(|it| it.contains(&Lever::Plain("channels-last")));
    assert!(!is_tried(&fit(1_000, &[]).1));
    let remedies = vec![("channels-last", "…".to_owned())];
    let cause = Cause { title: "workspaces".to_owned(), bytes: 1, remedies };
    let script = Script { usable: 1_000, causes: vec![cause.clone()], ..Script::default() };
    let (answer, tried) = fit_script(script, &[]);
    assert!(is_tried(&tried));
    assert_eq!(answer.causes, [cause]);
}

#[test]
fn what_cudnn_takes_without_a_limit_is_no_verdict_on_the_card() {
    let fits =
        |usable: u64| fit_script(Script { usable, workspace: 40_000, ..Script::default() }, &[]).0;
    let as_it_is = fits(12_000);
    assert!(
        as_it_is.as_it_is.fits() && as_it_is.baseline.peaks.reserved == 12_000,
        "{:?}",
        as_it_is.baseline
    );
    let answer = fits(11_700);
    assert_eq!(chosen(&answer).levers, [Lever::Plain("no-foreach")]);
    assert_eq!(chosen(&answer).peaks.reserved, 11_700, "as measured on the card");
    assert!(fits(100).chosen.is_none());
}

/// No smaller batch makes the state less: what changes the training is proposed, and chosen where that is allowed.
#[test]
fn state_that_does_not_fit_asks_for_another_optimizer_and_then_for_frozen_parts() {
    let script = |usable, allow_training| Script {
        usable,
        allow_training,
        state: 11_000,
        ..Script::default()
    };
    let (answer, _) = fit_script(script(800, false), &[]);
    assert_eq!((answer.chosen, answer.state), (None, 11_000));
    let proposed = &answer.plans[answer.proposed.unwrap()];
    assert!(proposed.levers.contains(&Lever::Plain("adafactor")) && proposed.outcome.fits());
    let (answer, tried) = fit_script(script(800, true), &[]);
    assert!(
        chosen(&answer).levers.contains(&Lever::Plain("adafactor")) && answer.proposed.is_none()
    );
    let freezes = |plan: &Vec<Lever>| plan.iter().any(|lever| matches!(lever, Lever::Freeze(_)));
    assert!(!tried.iter().any(freezes), "an optimizer is changed before anything is frozen");
    let (_, tried) = fit_script(script(650, true), &[]);
    assert!(tried.iter().any(freezes));
}

/// What the script can do by itself is taken before the same is written into it.
#[test]
fn settings_of_the_script_have_their_turn_beside_the_levers_that_they_are_like() {
    let own = |name: &str, like: &str, parts| Own {
        name: name.to_owned(),
        like: like.to_owned(),
        parts,
        ..Own::default()
    };
    let checkpoints = own("--grad-ckpt", "gradient-checkpointing", 1);
    let settings = vec![checkpoints.clone()];
    let (answer, _) = fit_script(Script { usable: 3_000, settings, ..Script::default() }, &[]);
    assert_eq!(chosen(&answer).levers, [Lever::Own(checkpoints.clone())]);
    assert_eq!(chosen(&answer).label, Label::Exact);
    let parts = |parts| own("--accum", "accumulate", parts);
    let settings = vec![parts(2), parts(4), parts(8)];
    let script = Script { usable: 4_600, settings, batch: Some(8), ..Script::default() };
    let unwritable = vec!["no-foreach", "checkpoint"];
    let (answer, tried) = fit_script(Script { unwritable, ..script }, &[]);
    let plan = chosen(&answer);
    assert!(plan.levers.iter().any(|lever| matches!(lever, Lever::Checkpoint(_) | Lever::Own(_))));
    assert!(!tried.contains(&vec![Lever::Accumulate(2)]));
}

/// `no-foreach` brings the peak down, but the checkpoints are enough without it.
#[test]
fn what_a_plan_does_not_need_is_left_out() {
    let (answer, _) = fit(10_000, &[]);
    let plan = chosen(&answer);
    assert!(matches!(plan.levers.as_slice(), [Lever::Checkpoint(_)]), "{:?}", plan.levers);
}
