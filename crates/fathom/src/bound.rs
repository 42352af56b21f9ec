//! A run that depends on values which nobody knows: it is tried with others as well. Sizes are the most that they can
//! give, and every way is gone the other way round.
//!
//! Other ways may end a script early. What it did not come to then is tried once more, with all else as it was at first.
//! What two parts need that make up the whole, such as all pairs of them, is most where a mask keeps half: that is tried too.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use study::{Decision, Most, Run, Verdict};

use crate::launch::Launch;
use crate::outcome;
use crate::ranks;
use crate::session::{self, Folder};
use crate::settings::{HALF, LEAST, MOST, MOST_AT, Settings, ZERO};
use crate::warm::speaks_of_refusal;
use crate::world::World;

/// Seconds that it may take, and how many times those of the first run besides.
const PATIENCE: u64 = 20;
const TIMES: u64 = 2;

/// So many runs may try other values.
const TRIES: usize = 3;

/// Whether the most that such values can give would say more of a run.
pub(crate) fn is_open(run: &Run, settings: &Settings) -> bool {
    run.verdict == Verdict::Fits
        && !settings.assume.iter().any(|word| word == LEAST)
        && run.decisions.iter().any(Decision::is_open)
}

/// What ranks need with the most, beside those whose files lie in `least`; what they print is dropped. `None` if somebody
/// wants us to end.
pub(crate) fn most_of_ranks(
    launch: &Launch,
    command: &[String],
    settings: &Settings,
    world: &World,
    (first, least): (&Run, &Path),
) -> Result<Option<Most>> {
    let mut tries = Tries::new(first);
    while let Some(other) = tries.next() {
        if session::ending().is_some() {
            return Ok(None);
        }
        let folder = Folder::new("most")?;
        let settings = Settings { record: false, ..other.settings(settings) };
        let run = ranks::run(launch, command, &settings, world, folder.path(), true)?.0;
        let was_refused = run.failure.as_deref().is_some_and(speaks_of_refusal);
        tries.take(first, run, have_same(first, least, folder.path()), was_refused);
    }
    Ok(tries.end())
}

/// Seconds that a run may take which repeats the first one: a large number may be a loop's, and such a run is given up.
pub(crate) fn patience(first: &Run) -> u64 {
    PATIENCE + TIMES * first.wall_seconds.ceil() as u64
}

/// Which values are others than at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// All, which give the most.
    Everywhere,
    /// Those of some places, such as `train.py:88`.
    Places(Vec<String>),
    /// Masks, which keep half.
    Masks,
}

/// Other values to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) at: At,
    /// Seconds that it may take: a large number may be a loop's, and such a run is given up.
    patience: u64,
}

/// What is said while it runs.
impl fmt::Display for Other {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.at {
            At::Masks => "running again with masks that keep half",
            At::Everywhere | At::Places(_) => "running again with other values",
        };
        write!(formatter, "{what} (at most {} s)", self.patience)
    }
}

impl Other {
    /// The settings of a run with these.
    pub(crate) fn settings(&self, settings: &Settings) -> Settings {
        let words = match &self.at {
            At::Everywhere => vec![MOST.to_owned()],
            At::Places(places) => places.iter().map(|place| format!("{MOST_AT}{place}")).collect(),
            At::Masks => vec![HALF.to_owned()],
        };
        let assume = words.into_iter().chain(settings.assume.clone()).collect();
        let timeout = Some(settings.timeout.map_or(self.patience, |own| own.min(self.patience)));
        Settings { assume, timeout, ..settings.clone() }
    }
}

/// Runs with other values beside a first one.
pub(crate) struct Tries {
    patience: u64,
    made: usize,
    /// What none of them has tried yet.
    left: Vec<Decision>,
    /// Masks that have not been tried with half of it.
    masks: Vec<Decision>,
    /// What they say together.
    most: Option<Most>,
}

impl Tries {
    pub(crate) fn new(first: &Run) -> Tries {
        let left = first.decisions.iter().filter(|decision| decision.is_open()).cloned().collect();
        let masks = first.decisions.iter().filter(|decision| decision.keeps_nothing()).cloned();
        Tries { patience: patience(first), made: 0, left, masks: masks.collect(), most: None }
    }

    /// What is to be tried next, if that can change the answer.
    pub(crate) fn next(&self) -> Option<Other> {
        if self.most.as_ref().is_some_and(|most| !most.fits) {
            return None;
        }
        let places = self.left.iter().filter_map(|decision| decision.place.as_ref());
        let places: Vec<String> = places.map(|(file, line)| format!("{file}:{line}")).collect();
        let at = match self.made {
            0 if self.left.is_empty() => return None,
            0 => At::Everywhere,
            made if made < TRIES && !places.is_empty() => At::Places(places),
            _ if self.masks.is_empty() => return None,
            _ => At::Masks,
        };
        Some(Other { at, patience: self.patience })
    }

    /// What a run with other values gave: whether it allocated the same as the first one, and whether it was refused what
    /// that one was not.
    pub(crate) fn take(&mut self, first: &Run, run: Run, have_same: bool, was_refused: bool) {
        let is_tried = |open: &Decision| run.decisions.iter().any(|other| is_there(open, other));
        let of_masks = self.next().is_some_and(|other| other.at == At::Masks);
        let open = if of_masks { &mut self.masks } else { &mut self.left };
        let (tried, left): (Vec<Decision>, Vec<Decision>) = open.drain(..).partition(is_tried);
        let one = beside(first, run, (have_same, was_refused), &tried);
        self.most = Some(match self.most.take() {
            Some(most) => together(most, one),
            None => one,
        });
        if of_masks {
            return;
        }
        self.left = left;
        self.made = if tried.is_empty() { TRIES } else { self.made + 1 };
    }

    /// What they say; of what was never tried nothing is known.
    pub(crate) fn end(self) -> Option<Most> {
        let untried = study::places(self.left.iter().map(Decision::to_string).collect());
        let most = self.most?;
        Some(match untried {
            Some(places) if most.fits => {
                let failure = Some(format!("no other value could be tried for {places}"));
                Most { is_same: false, device_bytes: None, fits: false, failure }
            }
            _ => most,
        })
    }
}

/// Whether two decisions are those of one place. A warm process calls a file as the command does, a cold one by its path.
pub(crate) fn is_there(one: &Decision, other: &Decision) -> bool {
    let is_same_file = |one: &str, other: &str| {
        let [short, long] = if one.len() < other.len() { [one, other] } else { [other, one] };
        long.strip_suffix(short).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
    };
    one.operator == other.operator
        && match (&one.place, &other.place) {
            (Some((file, line)), Some((same, at))) => line == at && is_same_file(file, same),
            (one, other) => one == other,
        }
}

/// Whether the processes of two runs allocated the same, those of each rank.
fn have_same(first: &Run, least: &Path, most: &Path) -> bool {
    let same = |least: &Path, most: &Path| outcome::have_same_allocations(least, most);
    let Some(ranks) = &first.ranks else { return same(least, most) };
    ranks
        .rows
        .iter()
        .all(|row| same(&session::rank(least, row.rank), &session::rank(most, row.rank)))
}

/// What a run that tried these says beside the first one.
fn beside(
    first: &Run,
    run: Run,
    (have_same, was_refused): (bool, bool),
    tried: &[Decision],
) -> Most {
    let are_ways = tried.iter().all(Decision::is_way);
    // A way that ends the script needs no more than it had until then. But for what was refused it would have gone on.
    let has_failed = run.verdict == Verdict::ScriptFailed && !was_refused;
    let is_ended = has_failed && are_ways && !tried.is_empty();
    let fits = run.verdict == Verdict::Fits || is_ended;
    let is_of_memory = fits || run.verdict == Verdict::DoesNotFit;
    // Some were the same in both runs: nobody knows whether they matter.
    let is_tried = first.decisions.iter().all(|decision| decision.assumed != ZERO);
    // What is freed earlier or later moves the peak as well. Ways, of which there are two, may differ in all but that.
    let peak = |run: &Run| run.peak.as_ref().map(|peak| (peak.allocated.bytes, peak.device_bytes));
    let needs_same = peak(&run) == peak(first) || is_ended && peak(&run) <= peak(first);
    let is_same = fits && is_tried && (have_same || are_ways) && needs_same;
    Most {
        is_same,
        device_bytes: run.peak.as_ref().filter(|_| fits).map(|peak| peak.device_bytes),
        fits,
        failure: (!is_of_memory).then(|| run.failure.unwrap_or_default()),
    }
}

/// The larger of two, and the worse.
pub(crate) fn together(one: Most, other: Most) -> Most {
    Most {
        is_same: one.is_same && other.is_same,
        device_bytes: one.device_bytes.max(other.device_bytes),
        fits: one.fits && other.fits,
        failure: one.failure.or(other.failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(file: &str, line: u64, operator: &str) -> Decision {
        let [operator, why, assumed] = [operator, "unknown", "either"].map(str::to_owned);
        let place = Some((file.to_owned(), line));
        Decision { operator, place, library: None, why, assumed, count: 1 }
    }

    #[test]
    fn a_file_may_be_called_by_its_path() {
        let one = decision("train.py", 8, "item");
        assert!(is_there(&one, &decision("/home/me/train.py", 8, "item")));
        assert!(is_there(&decision("/home/me/train.py", 8, "item"), &one));
        assert!(!is_there(&one, &decision("/home/me/pretrain.py", 8, "item")));
        assert!(!is_there(&one, &decision("train.py", 9, "item")));
        assert!(!is_there(&one, &decision("train.py", 8, "__bool__")));
    }
}
