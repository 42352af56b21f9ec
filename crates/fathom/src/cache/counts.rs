//! How many answers were remembered, and why others were not.

use std::collections::{BTreeMap, BTreeSet};

/// Where answers came from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Trials that were run.
    pub(crate) run: usize,
    /// Trials whose answer was remembered.
    pub(crate) remembered: usize,
    /// Why answers were not remembered, and how many.
    not_kept: BTreeMap<String, usize>,
    /// Places at which trials read values that nobody knows.
    decided: BTreeSet<String>,
}

impl Counts {
    /// One more was not remembered.
    pub(crate) fn note(&mut self, why: String) {
        *self.not_kept.entry(why).or_default() += 1;
    }

    /// A trial has read values that nobody knows at a place.
    pub(crate) fn decided(&mut self, place: String) {
        self.decided.insert(place);
    }

    /// What a reader should know about what is remembered, and what was assumed.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(first) = self.decided.first() {
            let others = match self.decided.len() {
                1 => String::new(),
                count => format!(" and at {} other places", count - 1),
            };
            notes.push(format!(
                "what {first}{others} gives is not known; trials took the least that it can be, `fathom run` says more"
            ));
        }
        if self.remembered != 0 {
            notes.push(
                "remembered answers are of the same command, variables, files and packages; time, random numbers, \
                 the machine and what libraries read below Python are not compared: `--fresh` runs all"
                    .to_owned(),
            );
        }
        for (why, count) in &self.not_kept {
            let trials = if *count == 1 { "1 trial".to_owned() } else { format!("{count} trials") };
            notes.push(format!("not remembered, {trials}: {why}"));
        }
        notes
    }
}
