//! What a run needs: the smallest GPU of its kind on which it goes through.
//!
//! A replay finds a size at which every recorded request is met. But requests may depend on what is free: libraries
//! choose smaller work areas, scripts ask how much there is. So the size is run, and so is a little less: the first must
//! go through, the second must not.

use std::fmt;

/// A need is found if this part of it less is too little: one in fifty, 2 %.
const FINE: u64 = 50;

/// Rounds of trials, at most.
const ROUNDS: usize = 6;

/// How often PyTorch may empty its cache in a step for want of room: each time the card waits until all work is done, and
/// memory is given back and taken again. What does so more often would crawl, not train.
pub const FLUSHES: u64 = 8;

/// Memory of a card with which a run goes through, context and other programs included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    pub bytes: u64,
    pub known: NeedKnown,
}

/// How a need is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedKnown {
    /// The script ran on a card of this size; with 2 % less it ran out of memory, or only emptied its cache.
    Run,
    /// The script ran on a card of this size; whether less would do was not found in the time there is.
    Enough,
    /// A replay of its requests completes with this much and with nothing less; it was not run.
    Replay,
    /// The run took this much. Less may do.
    Taken,
}

impl NeedKnown {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            NeedKnown::Run => "run",
            NeedKnown::Enough => "enough",
            NeedKnown::Replay => "replay",
            NeedKnown::Taken => "taken",
        }
    }
}

impl fmt::Display for NeedKnown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            NeedKnown::Run => "tried; 2 % less runs out of memory",
            NeedKnown::Enough => "tried; less may do",
            NeedKnown::Replay => "by replay, CUDA context included",
            NeedKnown::Taken => "what the run took; less may do",
        })
    }
}

/// What came of a run on a card of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// It went through; the smallest card by a replay of this very run, if that is known.
    Went { floor: Option<u64> },
    /// It ran out of memory, or emptied its cache too often.
    RanOut,
    /// Something else ended it: the size says nothing.
    Other,
}

/// Searches from a replay's `floor` and what the run has `taken`; `run` tries cards of two sizes, which may happen at
/// once.
pub fn search<E>(
    floor: u64,
    taken: u64,
    mut run: impl FnMut([u64; 2]) -> Result<[Tried; 2], E>,
) -> Result<Need, E> {
    let enough = taken.max(floor);
    let mut bracket = Bracket { too_little: 0, enough, has_run: false, hint: Some(floor) };
    for _ in 0..ROUNDS {
        let sizes = bracket.next();
        let tried = run(sizes)?;
        if tried.contains(&Tried::Other) {
            break;
        }
        sizes.into_iter().zip(tried).for_each(|(size, tried)| bracket.take(size, tried));
        if bracket.is_narrow() {
            break;
        }
    }
    let (bytes, known) = match (bracket.has_run, bracket.is_narrow()) {
        (true, true) => (bracket.enough, NeedKnown::Run),
        (true, false) => (bracket.enough, NeedKnown::Enough),
        (false, _) if bracket.too_little == 0 => (floor, NeedKnown::Replay),
        (false, _) => (bracket.enough, NeedKnown::Taken),
    };
    Ok(Need { bytes, known })
}

/// What is known to be too little, and what to be enough.
struct Bracket {
    too_little: u64,
    enough: u64,
    /// Whether the script ran on a card with just enough.
    has_run: bool,
    /// A size that a replay says is the least, if none of its runs has contradicted it yet.
    hint: Option<u64>,
}

impl Bracket {
    fn is_narrow(&self) -> bool {
        self.enough - self.too_little <= self.enough.div_ceil(FINE)
    }

    /// A replay's answer and 2 % less; without one, what parts the range in three.
    fn next(&mut self) -> [u64; 2] {
        let third = (self.enough - self.too_little) / 3;
        // The other run of the last round may have shown that it is too little.
        match self.hint.take().filter(|hint| self.too_little < *hint) {
            Some(hint) => [hint, (hint - hint / FINE).max(self.too_little)],
            None => [self.enough - third, self.too_little + third],
        }
    }

    fn take(&mut self, size: u64, tried: Tried) {
        match tried {
            Tried::Went { floor } if size <= self.enough => {
                (self.enough, self.has_run) = (size, true);
                self.hint = floor.filter(|floor| self.too_little < *floor && *floor < size);
            }
            // A larger size may fail where a smaller one went through: the smaller one did.
            Tried::RanOut if size < self.enough => self.too_little = self.too_little.max(size),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A script that goes through from `least` on, and whose replays say `floor(size)`.
    fn found(
        (floor, taken): (u64, u64),
        least: u64,
        floor_at: impl Fn(u64) -> Option<u64>,
    ) -> (Need, usize) {
        let mut runs = 0;
        let run = |sizes: [u64; 2]| {
            runs += sizes.len();
            let tried = |size: u64| match least <= size {
                true => Tried::Went { floor: floor_at(size) },
                false => Tried::RanOut,
            };
            Ok::<_, Infallible>(sizes.map(tried))
        };
        let Ok(need) = search(floor, taken, run);
        (need, runs)
    }

    #[test]
    fn a_replay_that_is_right_takes_two_runs() {
        let (need, runs) = found((4500 * MIB, 52_000 * MIB), 4499 * MIB, |_| Some(4500 * MIB));
        assert_eq!((need.bytes, need.known, runs), (4500 * MIB, NeedKnown::Run, 2));
    }

    #[test]
    fn what_the_run_took_may_be_what_it_needs() {
        let (need, runs) = found((9000 * MIB, 9000 * MIB), 9000 * MIB, |_| Some(9000 * MIB));
        assert_eq!((need.bytes, need.known, runs), (9000 * MIB, NeedKnown::Run, 2));
    }

    #[test]
    fn work_areas_that_do_with_less_are_followed_down() {
        // Each run on a smaller card asks for less.
        let floor = |size: u64| Some((size / 2).max(5700 * MIB));
        let (need, _) = found((17_000 * MIB, 17_800 * MIB), 5700 * MIB, floor);
        assert!((5700 * MIB..=5900 * MIB).contains(&need.bytes), "{need:?}");
        assert_eq!(need.known, NeedKnown::Run);
    }

    #[test]
    fn no_size_is_tried_that_was_too_little() {
        let mut too_little = 0;
        let run = |sizes: [u64; 2]| {
            assert!(sizes.iter().all(|size| too_little < *size), "{sizes:?} after {too_little}");
            let tried = |size: u64| match 720 * MIB <= size {
                true => Tried::Went { floor: (size < 1_000 * MIB).then_some(407 * MIB) },
                false => Tried::RanOut,
            };
            let failed = sizes.into_iter().filter(|size| tried(*size) == Tried::RanOut);
            too_little = failed.fold(too_little, u64::max);
            Ok::<_, Infallible>(sizes.map(tried))
        };
        let Ok(need) = search(357 * MIB, 2_900 * MIB, run);
        assert!((720 * MIB..760 * MIB).contains(&need.bytes), "{need:?}");
    }

    #[test]
    fn a_replay_that_says_too_little_is_followed_up() {
        let (need, _) = found((4000 * MIB, 9000 * MIB), 6100 * MIB, |_| None);
        assert!((6100 * MIB..=6300 * MIB).contains(&need.bytes), "{need:?}");
        assert_ne!(need.known, NeedKnown::Replay);
    }

    #[test]
    fn what_cannot_be_run_is_a_replays() {
        let other = |_| Ok::<_, Infallible>([Tried::Other; 2]);
        let Ok(need) = search(4000 * MIB, 9000 * MIB, other);
        assert_eq!(need, Need { bytes: 4000 * MIB, known: NeedKnown::Replay });
    }

    #[test]
    fn every_need_that_is_called_run_holds() {
        for least in (500..9000).step_by(37).map(|mib| mib * MIB) {
            for floor in [400, 2000, 5000, 8900].map(|mib| mib * MIB) {
                let taken = 9000 * MIB;
                let (need, runs) = found((floor, taken), least, |size| Some(size / 4 * 3));
                assert!(runs <= 2 * ROUNDS);
                assert!(least <= need.bytes && need.bytes <= taken, "{least} {floor} {need:?}");
                if need.known == NeedKnown::Run {
                    assert!(
                        need.bytes - need.bytes.div_ceil(FINE) <= least,
                        "{least} {floor} {need:?}"
                    );
                }
            }
        }
    }
}
