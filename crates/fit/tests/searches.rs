//! Searches against a machine whose answers are known, compared with running everything.

use fit::grid::{How, matrix};
use fit::largest::Search;
use fit::{Measured, Memory, Outcome, Peaks, Runner, Target, Trial};

/// Allocates `base + slope·x` and reserves a share more; a card gets through with less of the share.
struct Machine {
    base: u64,
    slope: u64,
    waste: f64,
    cards: Vec<Target>,
    /// Values that get through although smaller ones do not.
    lucky: Vec<u64>,
    runs: usize,
}

impl Machine {
    fn peaks(&self, x: u64) -> Peaks {
        let allocated = self.base + self.slope * x + (x % 7) * 512;
        let reserved = (allocated as f64 * (1.0 + self.waste)) as u64;
        Peaks { allocated, reserved, device: reserved + 100 }
    }

    fn fits(&self, x: u64, card: usize) -> bool {
        let Peaks { allocated, reserved, .. } = self.peaks(x);
        let least = if self.lucky.contains(&x) { 0 } else { (reserved - allocated) / 3 };
        allocated + least <= self.cards[card].usable_bytes
    }
}

impl Runner for Machine {
    type Error = ();

    fn run(&mut self, trials: &[Trial]) -> Result<Vec<Measured>, ()> {
        self.runs += trials.len();
        let answer = |trial: &Trial| {
            let x = trial.values[0].parse().unwrap();
            let fits = trial.memory == Memory::Unlimited || self.fits(x, trial.card);
            let outcome = if fits { Outcome::Fits } else { Outcome::DoesNotFit };
            Measured { outcome, peaks: self.peaks(x) }
        };
        Ok(trials.iter().map(answer).collect())
    }
}

fn cards() -> Vec<Target> {
    let card = |gib: u64| Target {
        name: format!("{gib}g"),
        usable_bytes: gib << 30,
        context_bytes: 100,
        kind: 0,
    };
    [8, 12, 24, 80].map(card).to_vec()
}

#[test]
fn the_largest_is_the_one_that_running_everything_finds() {
    for (base, slope, waste) in
        [(1 << 30, 97 << 20, 0.04), (3 << 30, 811 << 20, 0.3), (9 << 30, 1, 0.0)]
    {
        let mut machine = Machine { base, slope, waste, cards: cards(), lucky: vec![], runs: 0 };
        let brute: Vec<Option<i64>> =
            (0..4).map(|card| (1..=512).filter(|x| machine.fits(*x as u64, card)).max()).collect();
        let values = |x: i64| vec![x.to_string()];
        let all = cards();
        let mut search = Search::new(&mut machine, (1, 512), &values);
        let found: Vec<Option<i64>> =
            (0..4).map(|card| search.largest(card, &all[card]).unwrap().value).collect();
        assert_eq!(found, brute, "base {base} slope {slope}");
        assert!(machine.runs < 60, "{} runs for four cards", machine.runs);
    }
}

#[test]
fn where_what_fits_changes_from_value_to_value_the_next_few_are_run() {
    let (base, slope, waste) = (1 << 30, 97 << 20, 1.5);
    let all = cards();
    let mut machine = Machine { base, slope, waste, cards: cards(), lucky: vec![], runs: 0 };
    let limit = (1..=512).filter(|x| machine.fits(*x, 2)).max().unwrap();
    machine.lucky = vec![limit + 5, limit + 9, limit + 40];
    assert!(machine.fits(limit + 9, 2) && !machine.fits(limit + 1, 2));
    let values = |x: i64| vec![x.to_string()];
    let found = Search::new(&mut machine, (1, 512), &values).largest(2, &all[2]).unwrap();
    assert_eq!(found.value, Some(limit as i64 + 9));
}

#[test]
fn a_law_saves_runs_and_marks_what_it_predicts() {
    let mut machine = Machine {
        base: 1 << 30,
        slope: 512 << 20,
        waste: 0.0,
        cards: cards(),
        lucky: vec![],
        runs: 0,
    };
    let values: Vec<String> = (1..=32).map(|x| x.to_string()).collect();
    let points = matrix(&mut machine, &[values], &cards()).unwrap();
    assert_eq!(points.len(), 32 * 4);
    for point in &points {
        let x: u64 = point.values[0].parse().unwrap();
        assert_eq!(point.outcome == Outcome::Fits, machine.fits(x, point.card), "{point:?}");
    }
    assert!(points.iter().any(|point| point.how == How::Predicted));
    assert!(machine.runs < 20, "{} runs for 32 values", machine.runs);
}

#[test]
fn without_a_law_everything_is_run() {
    struct Wild(usize);
    impl Runner for Wild {
        type Error = ();
        fn run(&mut self, trials: &[Trial]) -> Result<Vec<Measured>, ()> {
            self.0 += trials.iter().filter(|trial| trial.memory == Memory::Unlimited).count();
            let wild = |trial: &Trial| {
                let x: u64 = trial.values[0].parse().unwrap();
                let reserved = (x * 2_654_435_761) % (20 << 30);
                let room = cards()[trial.card].usable_bytes;
                let fits = trial.memory == Memory::Unlimited || reserved <= room;
                Measured {
                    outcome: if fits { Outcome::Fits } else { Outcome::DoesNotFit },
                    peaks: Peaks { allocated: reserved, reserved, device: reserved },
                }
            };
            Ok(trials.iter().map(wild).collect())
        }
    }
    let values: Vec<String> = (1..=12).map(|x| x.to_string()).collect();
    let mut wild = Wild(0);
    let points = matrix(&mut wild, &[values], &cards()).unwrap();
    assert!(points.iter().all(|point| point.how != How::Predicted));
    assert_eq!(wild.0, 12);
}

/// As with cuDNN: without a limit a workspace is taken that a small card does without.
struct Workspaces {
    cards: Vec<Target>,
    runs: usize,
}

impl Workspaces {
    /// What the value needs, and the workspace that it would like beside.
    fn needs(x: u64) -> (u64, u64) {
        (x << 30, 64 << 30)
    }
}

impl Runner for Workspaces {
    type Error = ();

    fn run(&mut self, trials: &[Trial]) -> Result<Vec<Measured>, ()> {
        self.runs += trials.len();
        let answer = |trial: &Trial| {
            let (least, wish) = Workspaces::needs(trial.values[0].parse().unwrap());
            let room = match trial.memory {
                Memory::Own => self.cards[trial.card].usable_bytes,
                Memory::Unlimited => u64::MAX,
            };
            let taken = if least + wish <= room { least + wish } else { least };
            let outcome = if taken <= room { Outcome::Fits } else { Outcome::DoesNotFit };
            let taken = taken.min(room);
            Measured { outcome, peaks: Peaks { allocated: taken, reserved: taken, device: taken } }
        };
        Ok(trials.iter().map(answer).collect())
    }
}

#[test]
fn what_a_run_without_a_limit_takes_is_no_verdict_on_a_card() {
    let numbers = [1, 2, 4, 7, 8, 11, 12, 13, 24, 30];
    let lists = [vec![4, 9, 20], numbers.to_vec()];
    for numbers in lists {
        let values: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        let mut machine = Workspaces { cards: cards(), runs: 0 };
        let points = matrix(&mut machine, &[values], &cards()).unwrap();
        assert_eq!(points.len(), numbers.len() * 4);
        for point in &points {
            let fits =
                point.values[0].parse::<u64>().unwrap() << 30 <= cards()[point.card].usable_bytes;
            assert_eq!(point.outcome == Outcome::Fits, fits, "{point:?}");
        }
    }
    let mut machine = Workspaces { cards: cards(), runs: 0 };
    let values = |x: i64| vec![x.to_string()];
    let mut search = Search::new(&mut machine, (1, 512), &values);
    let found = [0, 1, 2, 3].map(|card| search.largest(card, &cards()[card]).unwrap().value);
    assert_eq!(found, [Some(8), Some(12), Some(24), Some(80)]);
}

#[test]
fn a_larger_card_that_ran_out_speaks_for_smaller_ones_of_its_kind() {
    let mut machine = Workspaces { cards: cards(), runs: 0 };
    let points = matrix(&mut machine, &[vec!["100".to_owned()]], &cards()).unwrap();
    assert!(points.iter().all(|point| point.outcome == Outcome::DoesNotFit));
    assert_eq!(machine.runs, 2, "without a limit and on the largest card");
    let how: Vec<How> = points.iter().map(|point| point.how).collect();
    assert_eq!(how, [How::Implied, How::Implied, How::Implied, How::Run]);
}
