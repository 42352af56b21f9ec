//! Runs a shortened training after the plain run of the first steps: its epochs end after a few batches, so that
//! evaluation, checkpoints and what follows them are seen.
//!
//! It reaches code that saves, and what it would save is not real: it is always confined (`confined.rs`).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use contract::files::UNCONFINED_FILE;
use study::{BatchOrder, Run, Verdict, Whole, WholeCame};

use crate::bound;
use crate::need::Again;
use crate::outcome;
use crate::runner::{OnPhantom, Wanted};
use crate::session;
use crate::settings::Settings;
use crate::warm::Job;

/// Steps after which enough was seen: validations every 50 and every 100 steps are among them.
const STEPS: u64 = 110;

/// Epochs that are waited for: what follows the first is seen again with all that it left behind.
const EPOCHS: u64 = 2;

/// Steps of an epoch: two show the optimizer with its state; where steps are quick, a validation every 50 is seen.
const SHORTEST: u64 = 2;
const LONGEST: u64 = 52;

/// Seconds that an epoch may take, and how long all of it may, at least and beside the plain run.
const EPOCH_SECONDS: f64 = 3.0;
const SECONDS: f64 = 8.0;
const TIMES: f64 = 1.5;

/// Seconds that an evaluation which the script's text promises is waited for, at least.
const AWAITED: f64 = 30.0;

/// How a training is shortened.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShortForm {
    /// Batches of an epoch.
    batches: u64,
    /// Batches of a step.
    of_step: u64,
    /// Steps after which it may end; 0 lets the script end by itself.
    steps: u64,
    /// Epochs that it is given before.
    epochs: u64,
    /// Seconds after which it may end; 0 does not count them.
    seconds: f64,
    /// Seconds after which it is given up.
    pub(crate) patience: u64,
    /// Seed of the order in which batches come; `None` leaves it to the script, and gives the largest last.
    order: Option<u64>,
}

impl ShortForm {
    /// For a script that makes so many backward passes in a step, which takes so many seconds.
    fn of((passes, step_seconds): (u64, f64), plain_seconds: f64) -> ShortForm {
        let quick = (EPOCH_SECONDS / step_seconds.max(0.001)) as u64;
        let seconds = (TIMES * plain_seconds).max(SECONDS);
        ShortForm {
            batches: quick.clamp(SHORTEST, LONGEST) * passes,
            of_step: passes,
            steps: STEPS,
            epochs: EPOCHS,
            seconds,
            patience: (4.0 * seconds + plain_seconds + AWAITED).ceil() as u64,
            order: None,
        }
    }

    pub(crate) fn order(&self) -> Option<u64> {
        self.order
    }

    /// The same, as far as the peak: to find the need, nothing more is wanted.
    fn up_to_peak(&self, run: &Run) -> ShortForm {
        let last = run.peak.as_ref().map_or(0, |peak| peak.reserved.step.max(peak.allocated.step));
        let steps = match last < run.steps {
            true => last + 1,
            false if run.stopped => run.steps,
            // What comes after the last step is there if the script ends by itself.
            false => 0,
        };
        ShortForm { steps, epochs: 0, seconds: 0.0, ..self.clone() }
    }

    /// As long as a run of it was, whatever time that takes: two are compared allocation by allocation.
    fn as_long_as(&self, run: &Run) -> ShortForm {
        let steps = if run.stopped { run.steps } else { 0 };
        ShortForm { steps, epochs: 0, seconds: 0.0, ..self.clone() }
    }

    /// As the doorway reads it.
    pub(crate) fn json(&self) -> String {
        let ShortForm { batches, of_step, steps, epochs, seconds, order, .. } = self;
        let order = order.map_or_else(|| "null".to_owned(), |seed| seed.to_string());
        format!(
            r#"{{"batches": {batches}, "of_step": {of_step}, "steps": {steps}, "epochs": {epochs}, "seconds": {seconds:.1}, "awaited": {AWAITED:.1}, "order": {order}}}"#
        )
    }
}

/// Whether there is more to see than the plain run saw.
pub(crate) fn is_wanted(run: &Run, settings: &Settings) -> bool {
    settings.whole
        && settings.record
        && settings.steps != 0
        && settings.place.is_none()
        && (run.stopped || settings.orders)
        && run.verdict == Verdict::Fits
        && run.peak.is_some()
        && session::ending().is_none()
}

/// Runs the shortened training beside the plain run, whose files lie in `plain`. If it needs more, it takes the plain
/// run's place, and the folder of its files is given; else the plain run says what was seen besides.
pub(crate) fn see(again: &mut Again, run: &mut Run, plain: &Path) -> Result<Option<PathBuf>> {
    let Some(pace) = outcome::pace(plain) else { return Ok(None) };
    let mut form = ShortForm::of(pace, run.wall_seconds);
    let (mut folder, mut short) = again.run_short(&form)?;
    let orders = match again.settings().orders {
        true => try_orders(again, &mut form, (&mut folder, &mut short))?,
        false => Vec::new(),
    };
    if session::ending().is_some() {
        return Ok(None);
    }
    let whole = Whole { orders, ..beside(run, (&short, &folder)) };
    let went = matches!(whole.came, WholeCame::Through);
    if went && bound::is_open(&short, again.settings()) {
        let same = form.as_long_as(&short);
        short.most = again.most(Some(&same), (&short, &folder))?;
        if short.most.as_ref().is_some_and(|most| most.is_same) {
            outcome::settle(&mut short);
        }
    }
    if !whole.is_reported {
        if went && !short.decisions.is_empty() {
            outcome::adopt(run, &short);
        }
        run.whole = Some(whole);
        return Ok(None);
    }
    again.shorten(form.up_to_peak(&short));
    (short.budget_bytes, short.whole) = (run.budget_bytes, Some(whole));
    short.judge_by_budget();
    *run = short;
    Ok(Some(folder))
}

/// What a shortened training, whose files lie in the folder, shows beside the plain run.
fn beside(run: &Run, (short, folder): (&Run, &Path)) -> Whole {
    let came = came(folder, short);
    let mut whole = Whole::of(run, short, came);
    (whole.batches, whole.refused) = (outcome::iterated(folder), outcome::refused(folder));
    whole.unreached = outcome::unreached(folder);
    let needs_more = || {
        let taken =
            |run: &Run| run.peak.as_ref().map(|peak| (peak.device_bytes, peak.allocated.bytes));
        let (of_short, of_plain) = (taken(short), taken(run));
        of_short.zip(of_plain).is_some_and(|(short, plain)| plain.0 < short.0 || plain.1 < short.1)
    };
    whole.is_reported = match whole.came {
        WholeCame::Through => needs_more(),
        WholeCame::RanOut => true,
        WholeCame::Failed(_) | WholeCame::NotRun(_) => false,
    };
    whole
}

/// The same for a plain run on each of several cards. On the largest of those where it went through, the training is
/// shortened; if that needs more, it is shortened on all of them, and takes the plain runs' places.
pub(crate) fn see_on_each(
    runner: &mut OnPhantom,
    settings: &Settings,
    runs: &mut [(Job, Run)],
) -> Result<()> {
    let memory = |run: &Run| run.card.as_ref().map_or(0, |card| card.memory_bytes);
    let (of_cards, wanted) = (0..runs.len(), |index: &usize| is_wanted(&runs[*index].1, settings));
    let mut wanted: Vec<usize> = of_cards.filter(wanted).collect();
    wanted.sort_by_key(|index| std::cmp::Reverse(memory(&runs[*index].1)));
    let Some((&first, others)) = wanted.split_first() else { return Ok(()) };
    let Some(pace) = outcome::pace(&runs[first].0.folder) else { return Ok(()) };
    let form = ShortForm::of(pace, runs[first].1.wall_seconds);
    let short = see_on(runner, &form, (&[first], &mut *runs))?;
    let reported = short.is_some_and(|whole| whole.is_reported);
    if reported && session::ending().is_none() {
        see_on(runner, &form.up_to_peak(&runs[first].1), (others, runs))?;
    }
    Ok(())
}

/// Shortens the training on some of the cards; what the last of them shows is given.
fn see_on(
    runner: &mut OnPhantom,
    form: &ShortForm,
    (indices, runs): (&[usize], &mut [(Job, Run)]),
) -> Result<Option<Whole>> {
    let short = |index: &usize| Wanted {
        short: Some(form.clone()),
        ..runner.recorded(runs[*index].1.card.clone())
    };
    let wanted: Vec<Wanted> = indices.iter().map(short).collect();
    runner.say("running a shortened training".to_owned());
    runner.expect(wanted.len());
    let mut last = None;
    for (index, (job, mut short)) in indices.iter().zip(runner.run_each(wanted)?) {
        let plain = &mut runs[*index].1;
        let whole = beside(plain, (&short, &job.folder));
        last = Some(whole.clone());
        if whole.is_reported {
            (short.budget_bytes, short.whole) = (plain.budget_bytes, Some(whole));
            short.judge_by_budget();
            runs[*index] = (job, short);
        } else {
            plain.whole = Some(whole);
        }
    }
    Ok(last)
}

/// Orders of batches that are tried.
const ORDERS: u64 = 5;

/// The same training with its batches in other orders. The one that needs most takes the place of the first.
fn try_orders(
    again: &mut Again,
    form: &mut ShortForm,
    (folder, short): (&mut PathBuf, &mut Run),
) -> Result<Vec<BatchOrder>> {
    let mut orders = Vec::new();
    for seed in 1..=ORDERS {
        let other = ShortForm { order: Some(seed), ..form.clone() };
        let (place, run) = again.run_short(&other)?;
        if session::ending().is_some() {
            break;
        }
        let Some(order) = order_of(seed, &place, &run) else { continue };
        orders.push(order);
        let ran_out = |run: &Run| run.out_of_memory.is_some();
        let taken = |run: &Run| run.peak.as_ref().map_or(0, |peak| peak.device_bytes);
        if (ran_out(short), taken(short)) < (ran_out(&run), taken(&run)) {
            (*folder, *short, *form) = (place, run, other);
        }
    }
    Ok(orders)
}

/// What one order gave; `None` if it says nothing of memory.
fn order_of(seed: u64, folder: &Path, run: &Run) -> Option<BatchOrder> {
    let ran_out = run.out_of_memory.is_some();
    let peak = run.peak.as_ref().filter(|_| ran_out || run.verdict == Verdict::Fits)?;
    let step = peak.allocated.step;
    let batch = outcome::largest_batch(folder, step);
    let (allocated, device) = (peak.allocated.bytes, peak.device_bytes);
    Some(BatchOrder { seed, allocated, device, step, batch, ran_out })
}

/// How far it came, by what it left.
fn came(folder: &Path, short: &Run) -> WholeCame {
    if let Ok(why) = fs::read_to_string(folder.join(UNCONFINED_FILE)) {
        return WholeCame::NotRun(format!(
            "this machine cannot keep it from writing over your files (Landlock of Linux 6.2 or newer: {})",
            why.trim()
        ));
    }
    match short.verdict {
        Verdict::Fits | Verdict::Grew => WholeCame::Through,
        Verdict::DoesNotFit if short.out_of_memory.is_some() => WholeCame::RanOut,
        _ => WholeCame::Failed(short.failure.clone().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_has_two_steps_at_least_and_more_where_they_are_quick() {
        assert_eq!(ShortForm::of((1, 10.0), 30.0).batches, 2);
        assert_eq!(ShortForm::of((4, 10.0), 30.0).batches, 8, "gradients are accumulated");
        assert_eq!(ShortForm::of((1, 0.0), 5.0).batches, LONGEST);
        assert_eq!(ShortForm::of((1, 0.0), 5.0).seconds, SECONDS);
        assert_eq!(ShortForm::of((1, 0.3), 20.0).seconds, 30.0);
    }
}
