//! Decisions of a script on values that nobody knows, and what a verdict over them rests on.

use crate::judgement::Judgement;
use crate::run::{Fit, Run};

/// A size or a branch that depends on values which the phantom does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The function that asked, as in `nonzero`.
    pub operator: String,
    /// The user's own line, if there is one.
    pub place: Option<(String, u64)>,
    /// The line of the library below it.
    pub library: Option<(String, u64)>,
    /// `unknown`; `dear`: it could be computed, and would take too long; or `modelled`.
    pub why: String,
    /// `least`, or `most`, that such values can lead to; `smallest`, or `largest`, that one number can be; `one`: 1 for a number behind them, `either`: and the script goes by
    /// how that compares; `given` by `--assume`; `weights`: those of the first step, for later ones; `ranks`:
    /// in a world also what other ranks are taken to give; `zero`.
    pub assumed: String,
    pub count: u64,
}

/// What a run needs if values that nobody knows give the most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Most {
    /// `None` if it was not to be had.
    pub device_bytes: Option<u64>,
    /// Whether it went through.
    pub fits: bool,
    /// Every tensor had the same size: what is unknown moves nothing.
    pub is_same: bool,
    /// Why it did not, if memory was not the reason.
    pub failure: Option<String>,
}

/// Functions that keep some of what they are given: from nothing to all of it.
const KEEPING: [&str; 6] =
    ["nonzero", "where", "__getitem__", "__setitem__", "masked_select", "argwhere"];

impl Decision {
    /// Whether a second run can try something else than was assumed.
    pub fn is_open(&self) -> bool {
        matches!(self.assumed.as_str(), "least" | "smallest" | "one" | "either")
    }

    /// Whether the least and the most that it can give are known, as no and yes are: two runs show both.
    pub fn is_bounded(&self) -> bool {
        self.is_way() || self.keeps() || matches!(self.assumed.as_str(), "smallest" | "largest")
    }

    /// Whether it is a way by yes or no.
    pub fn is_way(&self) -> bool {
        self.assumed == "either" || self.operator == "__bool__" && self.assumed != "given"
    }

    /// Whether it keeps some of what it is given, and was taken to keep nothing.
    pub fn keeps_nothing(&self) -> bool {
        self.keeps() && self.assumed == "least"
    }

    fn keeps(&self) -> bool {
        KEEPING.contains(&self.operator.as_str()) && self.assumed != "given"
    }
}

impl std::fmt::Display for Decision {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "`{}`", self.operator)?;
        match self.place.as_ref().or(self.library.as_ref()) {
            Some((file, line)) => write!(formatter, " at {file}:{line}"),
            None => Ok(()),
        }
    }
}

/// What it rests on that a run fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestsOn {
    /// On nothing that is unknown, or on nothing that moves the peak.
    Nothing,
    /// It fits with the least and with the most that unknown values can give, which needs so many bytes.
    Range(u64),
    /// It fits with the least, and runs out of memory with the most.
    Little,
    /// On what was assumed: the bounds are not known, or the most could not be tried.
    Assumption,
}

impl Run {
    /// What the verdict of a run that fits rests on: the one rule for reports, sweeps and plans.
    pub fn rests_on(&self) -> RestsOn {
        let is_bounded = self.decisions.iter().all(Decision::is_bounded);
        let keeps = self.decisions.iter().all(Decision::keeps);
        match &self.most {
            _ if self.decisions.is_empty() => RestsOn::Nothing,
            Some(Most { is_same: true, .. }) => RestsOn::Nothing,
            Some(Most { device_bytes: Some(most), fits: true, .. }) if is_bounded => {
                RestsOn::Range(*most)
            }
            Some(Most { fits: false, failure: None, .. }) if keeps => RestsOn::Little,
            _ => RestsOn::Assumption,
        }
    }

    /// The verdict's name, as in JSON: what fits with what was assumed, or with what was seen alone, has another.
    pub fn verdict_name(&self) -> &'static str {
        match self.judgement() {
            Judgement::Depends => "fits_if",
            _ => self.verdict.name(),
        }
    }

    /// Cards that have room for the most that unknown values can give; none where that is not known.
    pub fn keep_cards_that_are_certain(&mut self) {
        match self.rests_on() {
            RestsOn::Nothing => {}
            // The other way may need less: what is recorded is what counts then.
            RestsOn::Range(most)
                if self.peak.as_ref().is_some_and(|peak| most <= peak.device_bytes) => {}
            RestsOn::Range(most) => self.fits_on.retain(|card| {
                // A replay knows the least alone.
                most <= card.memory_bytes && !matches!(card.known, Fit::Replayed | Fit::Run)
            }),
            RestsOn::Little | RestsOn::Assumption => self.fits_on.clear(),
        }
    }

    /// Where values were read that nobody knows, in a few words.
    pub fn unknown_places(&self) -> Option<String> {
        places(self.decisions.iter().map(Decision::to_string).collect())
    }
}

/// The first of several places, and how many there are besides.
pub fn places(all: Vec<String>) -> Option<String> {
    let first = all.first()?;
    Some(match all.len() {
        1 => first.clone(),
        2 => format!("{first} and one other place"),
        count => format!("{first} and {} other places", count - 1),
    })
}
