//! Makes the trials that `sweep` and `fit` ask for, on the phantom, and remembers them.

mod answers;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use fit::{Knob, Measured, Memory, Outcome, Peaks, Runner, Setting, Trial};
use study::{Run, Unfinished};

pub(crate) use self::answers::measured;
use self::answers::{keep, largest, qualified};
use crate::bound::{self, Other, Tries};
use crate::cache::{self, Cache, Counts};
use crate::configs;
use crate::copied;
use crate::error::Hinted;
use crate::jobs::Jobs;
use crate::outcome;
use crate::progress::Progress;
use crate::python::Python;
use crate::ranks::LETTERS;
use crate::session::{self, Ended, Folder};
use crate::settings::Settings;
use crate::shard::Shard;
use crate::warm::{Guard, Job, Trials, was_refused};
use crate::whole::ShortForm;
use crate::world::{RankPlace, World};

/// The command on the phantom, with knobs to turn and cards to choose from.
pub(crate) struct OnPhantom {
    command: Vec<String>,
    knobs: Vec<Knob>,
    cards: Vec<gpus::Card>,
    settings: Settings,
    /// Made for the first trial that is not remembered: to start Python takes longer than all else.
    trials: Option<Trials>,
    folder: Folder,
    cache: Option<Cache>,
    progress: Progress,
    jobs: Jobs,
    /// The world that every trial is rank 0 of, unless a knob says another.
    world: Option<u32>,
    /// What trials may do to the world around them; one that is shortened is always confined.
    guard: Guard,
    /// How trials of the command as it stands are shortened, if they are.
    pub(crate) short: Option<ShortForm>,
    made: usize,
    pub(crate) counts: Counts,
    /// Which rows are this job's, and all of them, if several jobs share the trials.
    share: Option<(Shard, Vec<Vec<String>>)>,
    /// Whether a signal kept a trial from its end.
    is_cut: bool,
}

/// What one job is to be.
#[derive(Clone)]
pub(crate) struct Wanted {
    /// The card; `None` without a limit and without a card.
    pub(crate) card: Option<gpus::Card>,
    /// The command, variables and files.
    pub(crate) setting: Setting,
    /// Whether the memory's owners are recorded.
    pub(crate) record: bool,
    /// Whether it needs a process of its own.
    pub(crate) cold: bool,
    /// Values that are tried where nobody knows them.
    pub(crate) most: Option<Other>,
    /// The row of the sweep that it belongs to.
    pub(crate) row: Option<usize>,
    /// How its training is shortened, if it is.
    pub(crate) short: Option<ShortForm>,
}

impl OnPhantom {
    /// Finds the command's Python; nothing runs yet. With `remembers`, answers of earlier commands count.
    pub(crate) fn new(
        command: &[String],
        knobs: Vec<Knob>,
        cards: Vec<gpus::Card>,
        settings: Settings,
        remembers: bool,
        progress: Progress,
    ) -> Result<OnPhantom> {
        session::expect_trials();
        let folder = Folder::new("trials")?;
        let python = Python::of(command)?;
        python.iter().try_for_each(|python| python.cuda_torch().map(|_| ()))?;
        let cache = match remembers {
            true => Some(Cache::new(cache::folder()?.join("trials"), python.as_ref())),
            false => None,
        };
        let jobs = Jobs::new(settings.jobs);
        Ok(OnPhantom {
            command: command.to_vec(),
            knobs,
            cards,
            settings,
            trials: None,
            folder,
            cache,
            progress,
            jobs,
            world: None,
            guard: Guard { may_be_free: true, repeats: None },
            short: None,
            made: 0,
            counts: Counts::default(),
            share: None,
            is_cut: false,
        })
    }

    /// Makes every trial rank 0 of a world of so many ranks; `None` leaves them alone.
    pub(crate) fn in_world(mut self, size: Option<u32>) -> OnPhantom {
        self.world = size;
        self
    }

    /// Trials repeat a run that was made once, and nobody asked for them by name.
    pub(crate) fn guarded(mut self, guard: Guard) -> OnPhantom {
        self.cache.iter_mut().for_each(|cache| cache.unseen = guard.repeats);
        self.guard = guard;
        self
    }

    /// Why trials could not be confined on this machine, if they could not.
    pub(crate) fn unconfined(&self) -> Option<String> {
        self.trials.as_ref().and_then(Trials::unconfined)
    }

    /// Leaves the rows of other jobs to them.
    pub(crate) fn shared(mut self, shard: Option<Shard>, rows: Vec<Vec<String>>) -> OnPhantom {
        self.share = shard.map(|shard| (shard, rows));
        self
    }

    /// Whether another job is to run it.
    fn is_of_another(&self, wanted: &Wanted) -> bool {
        let shard = self.share.as_ref().map(|(shard, _)| shard);
        shard.zip(wanted.row).is_some_and(|(shard, row)| !shard.owns(row))
    }

    /// Whether trials are ranks of one world.
    pub(crate) fn is_in_world(&self) -> bool {
        self.world.is_some()
    }

    /// Whether trials were run that started Python anew.
    pub(crate) fn is_cold(&self) -> bool {
        self.trials.as_ref().is_some_and(|trials| !trials.is_warm())
    }

    /// The command as it stands, with nothing turned.
    pub(crate) fn as_given(&self) -> Setting {
        let (words, world_size) = (self.command.clone(), self.world);
        Setting { words, world_size, ..Setting::default() }
    }

    /// What ended the trials before their end, if something did.
    pub(crate) fn unfinished(&self, began: Instant) -> Option<Unfinished> {
        let signal = session::ending().filter(|_| self.is_cut).map(session::name)?;
        Some(Unfinished { signal: Some(signal), seconds: began.elapsed().as_secs_f64() })
    }

    /// What is said of all trials together.
    pub(crate) fn trials(&self, began: Instant, notes: Vec<String>) -> report::Trials {
        report::Trials {
            run: self.counts.run,
            remembered: self.counts.remembered,
            unfinished: self.unfinished(began),
            wall_seconds: began.elapsed().as_secs_f64(),
            unknown_places: self.counts.unknown_places(),
            notes,
        }
    }

    /// What is being done, for whoever waits.
    pub(crate) fn say(&mut self, doing: String) {
        self.progress.say(doing);
    }

    /// So many trials more are to come.
    pub(crate) fn expect(&mut self, count: usize) {
        self.progress.expect(count);
    }

    /// Recorded runs of the command as it stands, on each of these cards.
    pub(crate) fn run_on(&mut self, cards: &[gpus::Card]) -> Result<Vec<Run>> {
        let wanted = |card: &gpus::Card| self.recorded(Some(card.clone()));
        let wanted: Vec<Wanted> = cards.iter().map(wanted).collect();
        self.expect(wanted.len());
        Ok(self.run_each(wanted)?.into_iter().map(|(_, run)| run).collect())
    }

    /// A recorded run of the command as it stands.
    pub(crate) fn recorded(&self, card: Option<gpus::Card>) -> Wanted {
        Wanted {
            card,
            setting: self.as_given(),
            record: true,
            cold: false,
            most: None,
            row: None,
            short: self.short.clone(),
        }
    }

    /// Runs each, or remembers what it gave, in the order given: its folder and its run.
    pub(crate) fn run_each(&mut self, wanted: Vec<Wanted>) -> Result<Vec<(Job, Run)>> {
        let all = self.run_own(wanted)?;
        Ok(all.into_iter().filter_map(|(job, run)| Some((job, run?))).collect())
    }

    /// The same; `None` where another job has not run it yet.
    fn run_own(&mut self, wanted: Vec<Wanted>) -> Result<Vec<(Job, Option<Run>)>> {
        self.cache.iter_mut().for_each(Cache::look_again);
        let (mut jobs, mut keys, mut runs) = (Vec::new(), Vec::new(), Vec::new());
        let of_others: Vec<bool> = wanted.iter().map(|it| self.is_of_another(it)).collect();
        let is_of_another = |index: &usize| of_others[*index];
        for wanted in wanted {
            // A shortened training reads what it wrote itself: it is not remembered.
            // Nor is one that runs in a copy, which is another folder every time.
            let is_kept = wanted.short.is_none() && wanted.setting.texts.is_empty();
            let cache = self.cache.as_ref().filter(|_| is_kept);
            keys.push(cache.map(|cache| cache.key(&wanted, &self.settings)));
            jobs.push(self.job(wanted)?);
            runs.push(None);
        }
        let (others, own): (Vec<usize>, Vec<usize>) = (0..jobs.len()).partition(is_of_another);
        let mut open = Vec::new();
        for index in own {
            runs[index] = self.recall(keys[index].as_deref(), &jobs[index]);
            open.extend(runs[index].is_none().then_some(index));
        }
        let to_run: Vec<(Option<&str>, &Job)> =
            open.iter().map(|&index| (keys[index].as_deref(), &jobs[index])).collect();
        for (&index, run) in open.iter().zip(self.make(&to_run)?) {
            runs[index] = Some(run);
        }
        // What others have found meanwhile is there by now.
        self.cache.iter_mut().for_each(Cache::look_again);
        for index in others {
            runs[index] = self.recall(keys[index].as_deref(), &jobs[index]);
        }
        for job in &jobs {
            outcome::unread(&job.folder).into_iter().for_each(|note| self.counts.unread(note));
        }
        Ok(jobs.into_iter().zip(runs).collect())
    }

    /// Runs each; one that read values which nobody knows is run with the most that they can give as well.
    pub(crate) fn answer_each(&mut self, wanted: Vec<Wanted>) -> Result<Vec<(Job, Measured)>> {
        let mut first = self.run_own(wanted.clone())?;
        let is_open = |index: &usize| {
            first[*index].1.as_ref().is_some_and(|run| bound::is_open(run, &self.settings))
        };
        let open: Vec<usize> = (0..first.len()).filter(is_open).collect();
        let tries = |index: usize| Some((index, Tries::new(first[index].1.as_ref()?)));
        let mut open: BTreeMap<usize, Tries> = open.into_iter().filter_map(tries).collect();
        let mut peaks: BTreeMap<usize, Peaks> = BTreeMap::new();
        loop {
            let next = |(&index, tries): (&usize, &Tries)| Some((index, tries.next()?));
            let next: Vec<(usize, Other)> = open.iter().filter_map(next).collect();
            if next.is_empty() {
                break;
            }
            self.progress.expect(next.len());
            let with = |(index, most)| Wanted { most: Some(most), ..Wanted::clone(&wanted[index]) };
            let (indices, others): (Vec<usize>, Vec<Wanted>) =
                next.into_iter().map(|one| (one.0, with(one))).unzip();
            for (index, (other, run)) in indices.into_iter().zip(self.run_own(others)?) {
                let (job, least) = &mut first[index];
                // Without the other half it is no answer.
                let (Some(run), Some(least), Some(tries)) = (run, &least, open.get_mut(&index))
                else {
                    *least = None;
                    open.remove(&index);
                    continue;
                };
                let needed = measured(&other, &run).peaks;
                let so_far = peaks.entry(index).or_insert(needed);
                *so_far = largest(so_far, &needed);
                let is_same = outcome::have_same_allocations(&job.folder, &other.folder);
                let was_refused = was_refused(&other, &run);
                tries.take(least, run, is_same, was_refused);
            }
        }
        for (index, tries) in open {
            let most = tries.end();
            first[index].1.iter_mut().for_each(|run| run.most = most.clone());
        }
        let answer = |(index, (job, run)): (usize, (Job, Option<Run>))| {
            let Some(run) = run else { return (job, Measured::not_run()) };
            let answer = qualified(measured(&job, &run), &run, peaks.get(&index));
            if answer.outcome == Outcome::FitsIf {
                run.decisions.iter().for_each(|decision| self.counts.decided(decision.to_string()));
            }
            (job, answer)
        };
        Ok(first.into_iter().enumerate().map(answer).collect())
    }

    /// Runs trials, and remembers each as soon as it has ended.
    fn make(&mut self, wanted: &[(Option<&str>, &Job)]) -> Result<Vec<Run>> {
        let jobs: Vec<&Job> = wanted.iter().map(|(_, job)| *job).collect();
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        if self.trials.is_none() {
            self.trials = Some(Trials::prepare(&self.command, &self.settings)?);
        }
        if self.share.is_some() && (self.is_cold() || jobs.iter().any(|job| job.cold)) {
            return Err(Hinted::error(
                "trials of this command cannot be remembered, so shards cannot share them: each starts Python anew",
                "leave `--shard` out: one job shows what it ran itself; or give the command as `python script.py`",
            ));
        }
        let (cache, counts, progress) = (&self.cache, &mut self.counts, &mut self.progress);
        let done = |index: usize, run: &Run| {
            if let (Some(cache), (Some(key), job)) = (cache, wanted[index]) {
                keep(cache, key, job, run, counts);
            }
            progress.advance();
        };
        let trials = self.trials.as_mut();
        let runs = trials.map(|trials| trials.run_all(&mut self.jobs, &jobs, done));
        let runs = runs.unwrap_or_else(|| Ok(Vec::new()))?;
        let unread = self.trials.as_mut().and_then(|trials| trials.unread.take());
        unread.into_iter().for_each(|note| self.counts.unread(note));
        let ended = runs.iter().filter(|run| run.verdict != study::Verdict::Interrupted).count();
        self.is_cut |= ended < jobs.len();
        self.counts.run += ended;
        Ok(runs)
    }

    /// A remembered trial: its files are put into the job's folder and read as those of any other.
    fn recall(&mut self, key: Option<&str>, job: &Job) -> Option<Run> {
        let how = match self.cache.as_mut()?.get(key?, &job.folder) {
            Ok(how) => how?,
            Err(why) => {
                self.counts.unread(format!("a remembered answer is not used: {why}"));
                return None;
            }
        };
        self.progress.advance();
        self.counts.remembered += 1;
        Some(outcome::read(
            &job.folder,
            &Ended::earlier(how.seconds, how.has_failed),
            &job.settings,
        ))
    }

    fn job(&mut self, wanted: Wanted) -> Result<Job> {
        self.made += 1;
        let folder = self.folder.path().join(self.made.to_string());
        std::fs::create_dir(&folder)?;
        let place = place(&wanted.setting, &folder)?;
        let mut words = wanted.setting.words;
        for change in &wanted.setting.files {
            configs::change(change, &folder.join("configs"), &mut words)?;
        }
        let copied = match wanted.setting.texts.as_slice() {
            [] => None,
            texts => Some(copied::copy(texts, &mut words, &folder.join("copy"))?),
        };
        let settings = match wanted.most {
            Some(other) => other.settings(&self.settings),
            None => self.settings.clone(),
        };
        let timeout = match &wanted.short {
            Some(form) => Some(settings.timeout.unwrap_or(0).max(form.patience)),
            None => settings.timeout,
        };
        let guard = Guard {
            may_be_free: self.guard.may_be_free && wanted.short.is_none(),
            ..self.guard.clone()
        };
        Ok(Job {
            words,
            environment: wanted.setting.environment,
            settings: Settings {
                card: wanted.card,
                record: wanted.record,
                keeps_source: wanted.record,
                place,
                timeout,
                short: wanted.short,
                ..settings
            },
            cold: wanted.cold,
            guard,
            folder,
            copied,
        })
    }

    /// Runs each without a limit, and records who holds the memory.
    pub(crate) fn record_each(&mut self, values: &[Vec<String>]) -> Result<Vec<Run>> {
        self.progress.expect(values.len());
        let trial = |values: &Vec<String>| {
            let values = values.clone();
            let wanted = self.wanted(&Trial { values, card: 0, memory: Memory::Unlimited })?;
            Ok(Wanted { record: true, ..wanted })
        };
        let wanted = values.iter().map(trial).collect::<Result<_>>()?;
        Ok(self.run_each(wanted)?.into_iter().map(|(_, run)| run).collect())
    }

    fn wanted(&self, trial: &Trial) -> Result<Wanted> {
        let mut setting = self.as_given();
        for (knob, value) in self.knobs.iter().zip(&trial.values) {
            knob.set(value, &mut setting).map_err(hinted)?;
        }
        let card = self.cards[trial.card].clone();
        let card = match trial.memory {
            Memory::Own => card,
            Memory::Unlimited => card.with_memory(gpus::UNLIMITED_BYTES),
        };
        let cold = self.knobs.iter().any(Knob::is_read_at_import);
        let rows = self.share.as_ref().map(|(_, rows)| rows);
        let row = rows.and_then(|rows| rows.iter().position(|row| *row == trial.values));
        Ok(Wanted { card: Some(card), setting, record: false, cold, most: None, row, short: None })
    }
}

/// Rank 0 of the world that the setting asks for.
fn place(setting: &Setting, folder: &Path) -> Result<Option<RankPlace>> {
    let world = setting.world_size.map(|size| World::new(size, None)).transpose()?;
    Ok(world.map(|world| world.place(0, &folder.join(LETTERS))))
}

/// An error of a knob, with its cure.
pub(crate) fn hinted(error: fit::knob::Error) -> anyhow::Error {
    Hinted::error(error.to_string(), error.hint())
}

impl Runner for OnPhantom {
    type Error = anyhow::Error;

    fn run(&mut self, trials: &[Trial]) -> Result<Vec<Measured>> {
        self.progress.expect(trials.len());
        let wanted = trials.iter().map(|trial| self.wanted(trial)).collect::<Result<_>>()?;
        Ok(self.answer_each(wanted)?.into_iter().map(|(_, answer)| answer).collect())
    }

    fn is_settled(&mut self, trial: &Trial) -> bool {
        let wanted = self.wanted(trial).ok();
        let key = self.cache.as_ref().zip(wanted).map(|(it, of)| it.key(&of, &self.settings));
        let is_known = self.cache.as_mut().zip(key).is_some_and(|(cache, key)| cache.has(&key));
        is_known || self.share.is_some()
    }
}

impl Drop for OnPhantom {
    fn drop(&mut self) {
        if self.counts.run != 0 {
            self.cache.iter().for_each(Cache::tidy);
        }
    }
}
