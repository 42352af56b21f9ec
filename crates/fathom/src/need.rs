//! Runs a command again on cards of other sizes: what it needs, and what it would have needed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gpus::Card;
use study::need::{FLUSHES, Tried, search};
use study::{Beyond, Fit, FitsOn, Judgement, Most, Need, Run, Verdict};

use crate::bound::{self, Other, Tries};
use crate::confined::Window;
use crate::outcome;
use crate::progress::Progress;
use crate::runner::{OnPhantom, Wanted};
use crate::session;
use crate::settings::{Settings, Verify};
use crate::warm::{Guard, Job, was_refused};
use crate::whole::ShortForm;

/// Cards that are tried at most, the smallest: so many are shown.
const TRIED: usize = 8;

/// Settings of the allocator that would have met the one request are no cure where the run needs more than there is.
fn forget_settings(run: &mut Run) {
    let need = run.beyond.as_ref().and_then(|beyond| beyond.need);
    let has_room =
        run.card.as_ref().zip(need).map(|(card, need)| need.bytes <= card.available_bytes());
    let shortage = run.out_of_memory.as_mut().and_then(|refusal| refusal.shortage.as_mut());
    if let (Some(false), Some(shortage)) = (has_room, shortage) {
        shortage.trials.clear();
    }
}

/// Whether a script that ran out of memory caught it and came to less: not to a step or to an allocation that it had.
fn comes_short(run: &Run, first: &Run) -> bool {
    first.caught < run.caught && (run.steps < first.steps || run.anatomy().is_none())
}

/// Whether it caught it and went on with less, as with a smaller batch. PyTorch's own fallbacks give up soft memory alone,
/// without which the peak is another moment's.
fn holds_less(run: &Run, first: &Run) -> bool {
    let held = |run: &Run| run.anatomy().map_or(0, |anatomy| anatomy.hard_allocated);
    first.caught < run.caught && held(run) < held(first) / 100 * 99
}

/// The same command, as often as it takes.
pub(crate) struct Again {
    runner: OnPhantom,
    card: Card,
    settings: Settings,
    /// Why a run of the same failed that should not have.
    trouble: Option<String>,
    /// Whether the script caught an out-of-memory error on a smaller GPU and went on with less.
    goes_on_with_less: bool,
}

impl Again {
    /// Of a command that was run once, at that time; nothing runs yet.
    pub(crate) fn new(
        command: &[String],
        settings: &Settings,
        (first, ran): (&Run, Window),
    ) -> Result<Again> {
        let card = settings.card.clone().unwrap_or_else(gpus::unlimited);
        let patience = bound::patience(first);
        let timeout = Some(settings.timeout.map_or(patience, |own| own.min(patience)));
        // Each trial says for itself whether it needs too much.
        let settings = Settings { budget: None, timeout, ..settings.clone() };
        let progress = Progress::new(false);
        let cards = vec![card.clone()];
        let runner = OnPhantom::new(command, Vec::new(), cards, settings.clone(), true, progress)?;
        let may_be_free = settings.verify == Verify::On;
        let runner = runner.guarded(Guard { may_be_free, repeats: Some(ran) });
        Ok(Again { runner, card, settings, trouble: None, goes_on_with_less: false })
    }

    /// The settings of its runs.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// From here on it is a shortened training that is run again.
    pub(crate) fn shorten(&mut self, form: ShortForm) {
        self.runner.short = Some(form);
    }

    /// A shortened training on the card that was asked for, and the folder of its files.
    pub(crate) fn run_short(&mut self, form: &ShortForm) -> Result<(PathBuf, Run)> {
        let (job, run) = self.run_once(Some(form), None)?;
        Ok((job.folder, run))
    }

    /// The same with the most that values can give which nobody knows, beside the run whose files lie in `least`: a plain
    /// one, or a shortened training. `None` if nothing could be tried.
    pub(crate) fn most(
        &mut self,
        form: Option<&ShortForm>,
        (first, least): (&Run, &Path),
    ) -> Result<Option<Most>> {
        let mut tries = Tries::new(first);
        while let Some(other) = tries.next() {
            let (job, run) = self.run_once(form, Some(other))?;
            if session::ending().is_some() || self.runner.unconfined().is_some() {
                return Ok(None);
            }
            let is_same = outcome::have_same_allocations(least, &job.folder);
            let was_refused = was_refused(&job, &run);
            tries.take(first, run, is_same, was_refused);
        }
        Ok(tries.end())
    }

    fn run_once(&mut self, form: Option<&ShortForm>, most: Option<Other>) -> Result<(Job, Run)> {
        let record = form.is_some();
        let what = match (&most, form.and_then(ShortForm::order)) {
            (Some(other), _) => other.to_string(),
            (None, Some(_)) => {
                "running a shortened training with another order of batches".to_owned()
            }
            (None, None) => "running a shortened training".to_owned(),
        };
        self.runner.say(what);
        let plain = self.runner.recorded(self.settings.card.clone());
        let wanted = Wanted { short: form.cloned(), most, record, ..plain };
        self.runner.expect(1);
        let one = self.runner.run_each(vec![wanted])?.pop();
        one.context("a trial gave no answer")
    }

    /// What the reader should know about these runs.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let with_less = "on a smaller GPU the script catches out-of-memory errors and goes on with less; the need \
                         is that of such a run";
        self.trouble().into_iter().chain(self.goes_on_with_less.then(|| with_less.to_owned()))
    }

    /// Why the command was not run again as it was wanted, if it was not.
    fn trouble(&self) -> Option<String> {
        let cure = "`--verify on` runs it all the same, and what it writes, it writes again";
        match (self.runner.unconfined(), &self.trouble) {
            _ if session::ending().is_some() => {
                Some("a signal ended the runs that find what the script needs".to_owned())
            }
            _ if self.settings.verify != Verify::Confined => None,
            (Some(why), _) => Some(format!(
                "the script was not run again, since this machine cannot keep it from writing over your files \
                 (Landlock of Linux 6.2 or newer: {why}); {cure}"
            )),
            (None, Some(why)) => Some(format!(
                "run again without writing to your files and without other machines, the script failed ({why}); {cure}"
            )),
            (None, None) => None,
        }
    }

    /// Adds what the run needs; if it does not fit, what it would need without a limit.
    pub(crate) fn add_to(&mut self, run: &mut Run) -> Result<()> {
        match run.verdict {
            Verdict::DoesNotFit if run.out_of_memory.is_some() => {
                run.beyond = self.beyond()?;
                forget_settings(run);
            }
            Verdict::Fits | Verdict::Grew | Verdict::DoesNotFit => {
                run.need = self.need_of(run)?;
                run.judge_by_budget();
                self.try_cards(run)?;
            }
            Verdict::ScriptFailed | Verdict::Interrupted | Verdict::TimedOut => {}
        }
        Ok(())
    }

    /// The smallest card on which the run goes through; `None` if its replay does not say where to look.
    fn need_of(&mut self, run: &Run) -> Result<Option<Need>> {
        let Some(peak) = &run.peak else { return Ok(None) };
        let Some(floor) = self.own_floor(run) else { return Ok(None) };
        let need = search(floor, peak.device_bytes, |sizes| self.try_both(sizes, run))?;
        Ok(Some(need))
    }

    /// Without what other programs hold.
    fn own_floor(&self, run: &Run) -> Option<u64> {
        run.floor_bytes.map(|floor| floor.saturating_sub(self.card.used_bytes))
    }

    fn try_both(&mut self, sizes: [u64; 2], first: &Run) -> Result<[Tried; 2]> {
        let runs = self.run_at(&sizes)?;
        let goes_through = |run: &Run| {
            run.verdict == Verdict::Fits && run.flushes <= FLUSHES && !comes_short(run, first)
        };
        let tried = |index: usize| match runs.get(index) {
            Some(run) if goes_through(run) => Tried::Went { floor: self.own_floor(run) },
            Some(run) if run.verdict == Verdict::Fits || run.out_of_memory.is_some() => {
                Tried::RanOut
            }
            _ => Tried::Other,
        };
        let both = [tried(0), tried(1)];
        let has_failed =
            |run: &&Run| matches!(run.verdict, Verdict::ScriptFailed | Verdict::TimedOut);
        let trouble = runs.iter().find(has_failed).and_then(|run| run.failure.clone());
        self.trouble = self.trouble.take().or(trouble);
        self.goes_on_with_less |=
            runs.iter().any(|run| goes_through(run) && holds_less(run, first));
        Ok(both)
    }

    /// Recorded runs on cards with so much memory beside what other programs hold.
    fn run_at(&mut self, sizes: &[u64]) -> Result<Vec<Run>> {
        let text: Vec<String> = sizes.iter().map(|size| report::bytes::text(*size)).collect();
        let at = match self.is_unlimited(sizes) {
            true => "without a limit".to_owned(),
            false => format!("at {}", text.join(" and at ")),
        };
        self.runner.say(format!("running again {at}"));
        let with = |bytes: &u64| self.card.with_memory(bytes + self.card.used_bytes);
        let cards: Vec<Card> = sizes.iter().map(with).collect();
        self.runner.run_on(&cards)
    }

    fn is_unlimited(&self, sizes: &[u64]) -> bool {
        sizes.iter().any(|size| gpus::UNLIMITED_BYTES <= size + self.card.used_bytes)
    }

    /// Cards of the catalogue whose memory is near to the need are run: their chips may ask for more, or less.
    fn try_cards(&mut self, run: &mut Run) -> Result<()> {
        let Some(need) =
            run.needed().filter(|_| run.card.is_none() && run.verdict == Verdict::Fits)
        else {
            return Ok(());
        };
        let is_near =
            |card: &&Card| (need.bytes / 10 * 9..=need.bytes / 4 * 5).contains(&card.memory_bytes);
        let mut near: Vec<Card> = gpus::cards().iter().filter(is_near).cloned().collect();
        near.sort_by_key(|card| card.memory_bytes);
        near.truncate(TRIED);
        self.runner.say(format!("running on {} GPUs near to the need", near.len()));
        for (card, tried) in near.iter().zip(self.runner.run_on(&near)?) {
            run.fits_on.retain(|other| other.name != card.name);
            let is_same = tried.verdict == Verdict::Fits && !comes_short(&tried, run);
            if is_same && tried.has_kernels != Some(false) {
                let (name, memory_bytes) = (card.name.to_owned(), card.memory_bytes);
                let is_tight = tried.judgement() == Judgement::Tight;
                run.fits_on.push(FitsOn { name, memory_bytes, known: Fit::Run, is_tight });
            }
        }
        run.fits_on.sort_by_key(|card| card.memory_bytes);
        Ok(())
    }

    /// What the command needs where there is memory enough.
    fn beyond(&mut self) -> Result<Option<Beyond>> {
        let room = gpus::UNLIMITED_BYTES - self.card.used_bytes;
        let Some(run) = self.run_at(&[room])?.pop() else { return Ok(None) };
        let went = run.verdict == Verdict::Fits;
        let need = if went { self.need_of(&run)?.or(run.needed()) } else { None };
        Ok(Some(Beyond::of(&run, need)))
    }
}
