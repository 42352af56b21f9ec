//! Makes the trials that `sweep` and `fit` ask for, on the phantom, and remembers them.

use std::path::Path;

use anyhow::Result;
use cuda_abi::environment as name;
use fit::{Knob, Measured, Memory, Peaks, Runner, Setting, Trial, Verdict};
use report::Run;

use crate::cache::Cache;
use crate::cli::WorldArguments;
use crate::configs;
use crate::error::Hinted;
use crate::progress::Progress;
use crate::ranks::LETTERS;
use crate::settings::Settings;
use crate::warm::{Job, Trials};
use crate::world::{Place, World};

/// Lines of a failed script that are shown.
const SHOWN_LINES: usize = 6;

/// The command on the phantom, with knobs to turn and cards to choose from.
pub(crate) struct OnPhantom {
    command: Vec<String>,
    knobs: Vec<Knob>,
    cards: Vec<gpus::Card>,
    settings: Settings,
    trials: Trials,
    folder: tempfile::TempDir,
    cache: Option<Cache>,
    progress: Progress,
    /// The world that every trial is rank 0 of, unless a knob says another.
    world: Option<u32>,
    made: usize,
    /// Trials that were run, and those whose answer was remembered.
    pub(crate) counts: (usize, usize),
}

/// What one job is to be.
pub(crate) struct Wanted {
    /// The card; `None` without a limit and without a card.
    pub(crate) card: Option<gpus::Card>,
    /// The command, variables and files.
    pub(crate) setting: Setting,
    /// Whether the memory's owners are recorded.
    pub(crate) record: bool,
    /// Whether it needs a process of its own.
    pub(crate) cold: bool,
}

impl OnPhantom {
    /// Prepares the command's Python; nothing runs yet.
    pub(crate) fn new(
        command: &[String],
        knobs: Vec<Knob>,
        cards: Vec<gpus::Card>,
        settings: Settings,
        cache: Option<Cache>,
        progress: Progress,
    ) -> Result<OnPhantom> {
        let trials = Trials::prepare(command, &settings)?;
        let cache = cache.map(|cache| cache.with(&trials.software()));
        let folder = tempfile::Builder::new().prefix("fathom-trials-").tempdir()?;
        let command = command.to_vec();
        let (made, counts) = (0, (0, 0));
        Ok(OnPhantom {
            command,
            knobs,
            cards,
            settings,
            trials,
            folder,
            cache,
            progress,
            world: None,
            made,
            counts,
        })
    }

    /// Makes every trial rank 0 of a world of so many ranks; `None` leaves them alone.
    pub(crate) fn in_world(mut self, size: Option<u32>) -> OnPhantom {
        self.world = size;
        self
    }

    /// Whether trials are ranks of one world.
    pub(crate) fn is_in_world(&self) -> bool {
        self.world.is_some()
    }

    /// Whether trials are forked from a warm process.
    pub(crate) fn is_warm(&self) -> bool {
        self.trials.is_warm()
    }

    /// The command as it stands, with nothing turned.
    pub(crate) fn as_given(&self) -> Setting {
        let world = self.world.map(|size| (name::WORLD_SIZE.to_owned(), size.to_string()));
        let environment = world.into_iter().collect();
        Setting { words: self.command.clone(), environment, ..Setting::default() }
    }

    /// So many trials more are to come.
    pub(crate) fn expect(&mut self, count: usize) {
        self.progress.expect(count);
    }

    /// Runs each and gives its folder and its run; no answer is remembered.
    pub(crate) fn run_each(&mut self, wanted: Vec<Wanted>) -> Result<Vec<(Job, Run)>> {
        let jobs =
            wanted.into_iter().map(|wanted| self.job(wanted)).collect::<Result<Vec<Job>>>()?;
        let progress = &mut self.progress;
        let runs = self.trials.run_all(&jobs, || progress.advance())?;
        self.counts.0 += jobs.len();
        Ok(jobs.into_iter().zip(runs).collect())
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
        Ok(Job {
            words,
            environment: wanted.setting.environment,
            settings: Settings {
                card: wanted.card,
                record: wanted.record,
                place,
                ..self.settings.clone()
            },
            cold: wanted.cold,
            folder,
        })
    }

    /// Runs each without a limit, and records who holds the memory.
    pub(crate) fn record_each(&mut self, values: &[Vec<String>]) -> Result<Vec<Run>> {
        self.progress.expect(values.len());
        let trial = |values: &Vec<String>| {
            let values = values.clone();
            self.wanted(&Trial { values, card: 0, memory: Memory::Unlimited })
        };
        let wanted = values.iter().map(|values| Wanted { record: true, ..trial(values) }).collect();
        Ok(self.run_each(wanted)?.into_iter().map(|(_, run)| run).collect())
    }

    fn wanted(&self, trial: &Trial) -> Wanted {
        let mut setting = self.as_given();
        for (knob, value) in self.knobs.iter().zip(&trial.values) {
            knob.set(value, &mut setting);
        }
        let card = self.cards[trial.card].clone();
        let card = match trial.memory {
            Memory::Own => card,
            Memory::Unlimited => card.with_memory(gpus::UNLIMITED_BYTES),
        };
        let cold = self.knobs.iter().any(Knob::is_read_at_import);
        Wanted { card: Some(card), setting, record: false, cold }
    }
}

/// Rank 0 of the world that a knob asks for.
fn place(setting: &Setting, folder: &Path) -> Result<Option<Place>> {
    let asked = setting.environment.iter().rfind(|(variable, _)| variable == name::WORLD_SIZE);
    let Some((_, text)) = asked else { return Ok(None) };
    let size = text.trim().parse().map_err(|_| {
        Hinted::error(format!("a world of `{text}` ranks"), "`--vary world-size=8,16,64`")
    })?;
    let flags = WorldArguments { world_size: Some(size), ..WorldArguments::default() };
    let world = World::resolve(&flags)?;
    Ok(world.map(|world| world.place(0, &folder.join(LETTERS))))
}

impl Runner for OnPhantom {
    type Error = anyhow::Error;

    fn run(&mut self, trials: &[Trial]) -> Result<Vec<Measured>> {
        self.progress.expect(trials.len());
        let mut answers: Vec<Option<Measured>> = vec![None; trials.len()];
        let (mut missing, mut keys, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        for (index, trial) in trials.iter().enumerate() {
            let want = self.wanted(trial);
            let key = self.cache.as_ref().map(|cache| cache.key(&want, &self.settings));
            match self.cache.as_ref().zip(key.as_deref()).and_then(|(cache, key)| cache.get(key)) {
                Some(measured) => {
                    self.progress.advance();
                    self.counts.1 += 1;
                    answers[index] = Some(measured);
                }
                None => {
                    missing.push(index);
                    keys.push(key);
                    wanted.push(want);
                }
            }
        }
        for ((index, key), (job, run)) in missing.into_iter().zip(keys).zip(self.run_each(wanted)?)
        {
            let measured = measured(&job, &run);
            if let (Some(cache), Some(key)) = (&self.cache, key) {
                cache.put(&key, &job, &measured);
            }
            answers[index] = Some(measured);
        }
        Ok(answers.into_iter().flatten().collect())
    }
}

/// A run as an answer.
pub(crate) fn measured(job: &Job, run: &Run) -> Measured {
    let peaks = run.peak.as_ref().map_or_else(Peaks::default, |peak| Peaks {
        allocated: peak.allocated.bytes,
        reserved: peak.reserved.bytes,
        device: peak.device_bytes,
    });
    let verdict = match (run.verdict, &run.peak) {
        (report::Verdict::Fits, Some(_)) => Verdict::Fits,
        (report::Verdict::Fits, None) => Verdict::Failed("it did not use the card".to_owned()),
        // A trial has no baseline: none grew.
        (report::Verdict::DoesNotFit | report::Verdict::Grew, _) => Verdict::DoesNotFit,
        (report::Verdict::ScriptFailed, _) => {
            let why = run.failure.clone().unwrap_or_default();
            Verdict::Failed(format!("{why}\n{}", job.last_lines(SHOWN_LINES)).trim_end().to_owned())
        }
    };
    Measured { verdict, peaks }
}
