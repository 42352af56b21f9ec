//! Runs a command again on cards of other sizes: what it needs, and what it would have needed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gpus::Card;
use study::need::{FLUSHES, Tried, search};
use study::{Beyond, Fit, FitsOn, Most, Need, Run, Verdict};

use crate::bound::{self, Other, Tries};
use crate::outcome;
use crate::progress::Progress;
use crate::runner::{OnPhantom, Wanted};
use crate::settings::Settings;
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

/// The same command, as often as it takes.
pub(crate) struct Again {
    runner: OnPhantom,
    card: Card,
    settings: Settings,
}

impl Again {
    /// Of a command that was run once; nothing runs yet.
    pub(crate) fn new(command: &[String], settings: &Settings, first: &Run) -> Result<Again> {
        let card = settings.card.clone().unwrap_or_else(gpus::unlimited);
        let patience = bound::patience(first);
        let timeout = Some(settings.timeout.map_or(patience, |own| own.min(patience)));
        // Each trial says for itself whether it needs too much.
        let settings = Settings { budget: None, timeout, ..settings.clone() };
        let progress = Progress::new(false);
        let cards = vec![card.clone()];
        let runner = OnPhantom::new(command, Vec::new(), cards, settings.clone(), true, progress)?;
        Ok(Again { runner, card, settings })
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
        self.run_short_with(form, None)
    }

    /// The same with the most that values can give which nobody knows, beside the run whose files lie in `least`.
    pub(crate) fn most_of_short(
        &mut self,
        form: &ShortForm,
        (short, least): (&Run, &Path),
    ) -> Result<Option<Most>> {
        let mut tries = Tries::new(short);
        while let Some(other) = tries.next() {
            let (folder, run) = self.run_short_with(form, Some(other))?;
            tries.take(short, run, outcome::have_same_allocations(least, &folder));
        }
        Ok(tries.end())
    }

    fn run_short_with(&mut self, form: &ShortForm, most: Option<Other>) -> Result<(PathBuf, Run)> {
        let plain = self.runner.recorded(self.settings.card.clone());
        let wanted = Wanted { short: Some(form.clone()), most, ..plain };
        self.runner.expect(1);
        let one = self.runner.run_each(vec![wanted])?.pop();
        let (job, run) = one.context("a trial gave no answer")?;
        Ok((job.folder, run))
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
        let need = search(floor, peak.device_bytes, |sizes| self.try_both(sizes))?;
        Ok(Some(need))
    }

    /// Without what other programs hold.
    fn own_floor(&self, run: &Run) -> Option<u64> {
        run.floor_bytes.map(|floor| floor.saturating_sub(self.card.used_bytes))
    }

    fn try_both(&mut self, sizes: [u64; 2]) -> Result<[Tried; 2]> {
        let runs = self.run_at(&sizes)?;
        let tried = |index: usize| match runs.get(index) {
            Some(run) if run.verdict == Verdict::Fits && run.flushes <= FLUSHES => {
                Tried::Went { floor: self.own_floor(run) }
            }
            Some(run) if run.verdict == Verdict::Fits || run.out_of_memory.is_some() => {
                Tried::RanOut
            }
            _ => Tried::Other,
        };
        Ok([tried(0), tried(1)])
    }

    /// Recorded runs on cards with so much memory beside what other programs hold.
    fn run_at(&mut self, sizes: &[u64]) -> Result<Vec<Run>> {
        let with = |bytes: &u64| self.card.with_memory(bytes + self.card.used_bytes);
        let cards: Vec<Card> = sizes.iter().map(with).collect();
        self.runner.run_on(&cards)
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
        for (card, tried) in near.iter().zip(self.runner.run_on(&near)?) {
            run.fits_on.retain(|other| other.name != card.name);
            if tried.verdict == Verdict::Fits && tried.has_kernels != Some(false) {
                let (name, memory_bytes) = (card.name.to_owned(), card.memory_bytes);
                run.fits_on.push(FitsOn { name, memory_bytes, known: Fit::Run });
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
