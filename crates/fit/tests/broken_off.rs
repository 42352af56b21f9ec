//! Searches that are ended before they are over: what had been run is the answer, the rest is unknown.

use fit::grid::{How, matrix};
use fit::largest::Search;
use fit::plan::{Bench, Look, Plan, Speeds, Tried, Wish, Written, search};
use fit::{Lever, Measured, Memory, Outcome, Peaks, Runner, Target, Trial};

/// Needs a hundred bytes more with each value, and answers only so many times.
struct Machine {
    left: usize,
}

const CARD: u64 = 2000;

fn card() -> Target {
    Target { name: "card".to_owned(), usable_bytes: CARD, context_bytes: 0, kind: 0 }
}

fn not_run() -> Measured {
    Measured { outcome: Outcome::NotRun, peaks: Peaks::default() }
}

fn measured(bytes: u64, fits: bool) -> Measured {
    let outcome = if fits { Outcome::Fits } else { Outcome::DoesNotFit };
    Measured { outcome, peaks: Peaks { allocated: bytes, reserved: bytes, device: bytes } }
}

impl Runner for Machine {
    type Error = ();

    fn run(&mut self, trials: &[Trial]) -> Result<Vec<Measured>, ()> {
        let mut answer = |trial: &Trial| {
            let bytes = 100 * trial.values[0].parse::<u64>().unwrap();
            let fits = trial.memory == Memory::Unlimited || bytes <= CARD;
            match self.left.checked_sub(1) {
                None => not_run(),
                Some(left) => {
                    self.left = left;
                    measured(bytes, fits)
                }
            }
        };
        Ok(trials.iter().map(&mut answer).collect())
    }
}

#[test]
fn a_matrix_has_what_was_run_and_says_what_was_not() {
    let values = vec![["1", "2", "15", "25", "30"].map(str::to_owned).to_vec()];
    let whole = matrix(&mut Machine { left: 99 }, &values, &[card()]).unwrap();
    for left in 0..10 {
        let points = matrix(&mut Machine { left }, &values, &[card()]).unwrap();
        assert_eq!(points.len(), whole.len());
        for (point, known) in points.iter().zip(&whole) {
            let is_open = point.outcome == Outcome::NotRun;
            assert!(is_open || point.outcome == known.outcome, "{left}: {point:?}");
        }
        let open = points.iter().filter(|point| point.outcome == Outcome::NotRun).count();
        assert!(left < 5 || open <= 2, "{left}: {open}");
        assert!(5 <= left || 0 < open, "{left}");
    }
}

/// One of two jobs: it runs every second value, the other's are not run yet.
struct Half {
    all: Machine,
    asked: usize,
}

impl Runner for Half {
    type Error = ();

    fn run(&mut self, trials: &[Trial]) -> Result<Vec<Measured>, ()> {
        self.asked += trials.len();
        let is_own = |trial: &Trial| trial.values[0].parse::<u64>().unwrap() % 2 == 0;
        let answer = |(trial, own): (&Trial, Measured)| match is_own(trial) {
            true => own,
            false => Measured::not_run(),
        };
        Ok(trials.iter().zip(self.all.run(trials)?).map(answer).collect())
    }

    fn is_settled(&mut self, _: &Trial) -> bool {
        true
    }
}

#[test]
fn what_is_another_jobs_is_neither_predicted_nor_run_on_a_card() {
    let values = vec![(1..=30).map(|x: u32| x.to_string()).collect()];
    let predicted = matrix(&mut Machine { left: 999 }, &values, &[card()]).unwrap();
    assert!(predicted.iter().any(|point| point.how == How::Predicted), "a law holds");
    let mut half = Half { all: Machine { left: 999 }, asked: 0 };
    let points = matrix(&mut half, &values, &[card()]).unwrap();
    assert_eq!(half.asked, 30 + 5, "every value once, and its own above 20 on the card");
    for (point, x) in points.iter().zip(1..) {
        let own = if x <= 20 { Outcome::Fits } else { Outcome::DoesNotFit };
        assert_eq!(point.outcome, if x % 2 == 0 { own } else { Outcome::NotRun }, "{x}");
        assert_eq!(point.how, How::Run);
    }
}

#[test]
fn the_largest_so_far_is_not_taken_for_the_largest() {
    let values = |x: i64| vec![x.to_string()];
    for left in 0..40 {
        let mut machine = Machine { left };
        let found = Search::new(&mut machine, (1, 500), &values).largest(0, &card()).unwrap();
        assert!(found.unfinished || found.value == Some(20), "{left}: {found:?}");
        assert!(found.value.is_none_or(|value| value <= 20), "{left}: {found:?}");
        assert!(!found.at_end_of_range && found.failure.is_none(), "{left}: {found:?}");
        assert!(left != 0 || found.value.is_none() && found.unfinished);
        assert!(left != 39 || !found.unfinished);
    }
}

/// A script that no lever makes fit.
struct Script {
    left: usize,
}

impl Script {
    fn answer(&mut self) -> Measured {
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.map_or_else(not_run, |_| measured(2 * CARD, true))
    }
}

impl Bench for Script {
    type Error = ();

    fn try_all(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Tried>, ()> {
        let tried = |_| Tried { measured: self.answer(), facts: Vec::new() };
        Ok(plans.iter().map(tried).collect())
    }

    fn on_card(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Measured>, ()> {
        let on_card = |measured: Measured| match measured.outcome {
            Outcome::Fits => Measured { outcome: Outcome::DoesNotFit, ..measured },
            _ => measured,
        };
        Ok(plans.iter().map(|_| on_card(self.answer())).collect())
    }

    fn write(&mut self, _: &Plan) -> Result<Written, ()> {
        Ok(Written::InTheWay(Vec::new()))
    }

    fn look(&mut self, _: &[Lever], _: &[Lever]) -> Result<Look, ()> {
        Ok(Look::default())
    }
}

#[test]
fn plans_that_were_not_tried_are_neither_listed_nor_called_impossible() {
    let wish = Wish {
        card: card(),
        speeds: Speeds { flops: 1.0, bandwidth: 1.0 },
        only: Vec::new(),
        allow_training: false,
        knobs: Vec::new(),
        precision: "amp-bf16",
        headroom: 0,
    };
    let whole = search(&mut Script { left: 999 }, &wish).unwrap();
    assert!(2 <= whole.plans.len() && whole.chosen.is_none());
    let mut most = 0;
    for left in 0..20 {
        let answer = search(&mut Script { left }, &wish).unwrap();
        assert_eq!(answer.baseline.outcome == Outcome::NotRun, left == 0);
        assert!(answer.not_applicable.is_empty() && answer.plans.len() <= whole.plans.len());
        assert!(most <= answer.plans.len(), "one trial more is no plan less");
        most = answer.plans.len();
    }
}
