//! A run whose sizes depend on values that nobody knows: it is tried with the most that they can give as well.

use std::path::Path;

use anyhow::Result;
use study::{Decision, Most, Run, Verdict};

use crate::launch::Launch;
use crate::outcome;
use crate::ranks::RankRunner;
use crate::session::{self, Folder};
use crate::settings::{LEAST, MOST, Settings, ZERO};
use crate::world::World;

/// Seconds that it may take, and how many times those of the first run besides.
const PATIENCE: u64 = 20;
const TIMES: u64 = 2;

/// Whether the most that such values can give would say more of a run.
pub(crate) fn is_open(run: &Run, settings: &Settings) -> bool {
    run.verdict == Verdict::Fits
        && !settings.assume.iter().any(|word| word == LEAST)
        && run.decisions.iter().any(Decision::is_open)
}

/// What the command needs with the most, beside the run whose files lie in `least`; what it prints is dropped. `None` if
/// somebody wants us to end.
pub(crate) fn most(
    launch: &Launch,
    command: &[String],
    settings: &Settings,
    (first, least): (&Run, &Path),
) -> Result<Option<Most>> {
    if session::ending().is_some() {
        return Ok(None);
    }
    let folder = Folder::new("most")?;
    let settings = Settings { record: false, ..with_most(settings, patience(first)) };
    let printed = folder.path().join("printed");
    let ended = launch.run_quietly(command, &settings, folder.path(), &printed)?;
    let run = outcome::read(folder.path(), &ended, &settings);
    Ok(Some(compare((first, least), (run, folder.path()))))
}

/// The same of the ranks of a world: each that ran runs once more.
pub(crate) fn most_of_ranks(
    launch: &Launch,
    command: &[String],
    settings: &Settings,
    world: &World,
    (first, least): (&Run, &Path),
) -> Result<Option<Most>> {
    if session::ending().is_some() {
        return Ok(None);
    }
    let folder = Folder::new("most")?;
    let settings = Settings { record: false, ..with_most(settings, patience(first)) };
    let runner = RankRunner::new(launch, command, &settings, world, folder.path())?;
    let (run, _) = runner.quietly().run()?;
    let ranks = first.ranks.iter().flat_map(|ranks| &ranks.rows).map(|row| row.rank);
    let is_same = ranks.into_iter().all(|rank| {
        let [least, most] = [least, folder.path()].map(|folder| session::rank(folder, rank));
        have_same(&least, &most)
    });
    Ok(Some(beside(first, run, is_same)))
}

/// Seconds that the most may take: a large number may be a loop's, and such a run is given up.
pub(crate) fn patience(first: &Run) -> u64 {
    PATIENCE + TIMES * first.wall_seconds.ceil() as u64
}

/// The settings of a run with the most, for so many seconds.
pub(crate) fn with_most(settings: &Settings, patience: u64) -> Settings {
    let assume = std::iter::once(MOST.to_owned()).chain(settings.assume.clone()).collect();
    let timeout = Some(settings.timeout.map_or(patience, |own| own.min(patience)));
    Settings { assume, timeout, ..settings.clone() }
}

/// What a run with the most says beside the first one, each with its files.
pub(crate) fn compare((first, least): (&Run, &Path), (run, most): (Run, &Path)) -> Most {
    beside(first, run, have_same(least, most))
}

/// Whether the processes of two runs allocated the same.
fn have_same(least: &Path, most: &Path) -> bool {
    let both = outcome::allocations(most).zip(outcome::allocations(least));
    both.is_some_and(|(most, least)| most == least)
}

fn beside(first: &Run, run: Run, have_same: bool) -> Most {
    let fits = run.verdict == Verdict::Fits;
    let is_of_memory = matches!(run.verdict, Verdict::Fits | Verdict::DoesNotFit);
    // Some were the same in both runs: nobody knows whether they matter.
    let is_tried = first.decisions.iter().all(|decision| decision.assumed != ZERO);
    // What is freed earlier or later moves the peak as well.
    let peak = |run: &Run| run.peak.as_ref().map(|peak| peak.allocated.bytes);
    let is_same = fits && is_tried && have_same && peak(&run) == peak(first);
    Most {
        is_same,
        device_bytes: run.peak.as_ref().filter(|_| fits).map(|peak| peak.device_bytes),
        fits,
        failure: (!is_of_memory).then(|| run.failure.unwrap_or_default()),
    }
}
