//! How many answers were remembered, and why others were not.

use std::collections::{BTreeMap, BTreeSet};

/// Files with a sentence of their own.
const UNREAD: usize = 4;

/// Where answers came from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Trials that were run.
    pub(crate) run: usize,
    /// Trials whose answer was remembered.
    pub(crate) remembered: usize,
    /// Trials that were run and whose answer nobody will remember.
    pub(crate) unshared: usize,
    /// Why answers were not remembered, and how many.
    not_kept: BTreeMap<String, usize>,
    /// Places at which trials read values that nobody knows.
    decided: BTreeSet<String>,
    /// What trials, or those who remember them, left and nobody can read.
    unread: BTreeSet<String>,
}

impl Counts {
    /// One more was not remembered.
    pub(crate) fn note(&mut self, why: String) {
        *self.not_kept.entry(why).or_default() += 1;
    }

    /// Those of other trials of the same answer.
    pub(crate) fn join(&mut self, other: &Counts) {
        self.run += other.run;
        self.remembered += other.remembered;
        self.unshared += other.unshared;
        for (why, count) in &other.not_kept {
            *self.not_kept.entry(why.clone()).or_default() += count;
        }
        self.decided.extend(other.decided.iter().cloned());
        self.unread.extend(other.unread.iter().cloned());
    }

    /// A trial has read values that nobody knows at a place.
    pub(crate) fn decided(&mut self, place: String) {
        self.decided.insert(place);
    }

    /// Where what `fits if` rests on is read.
    pub(crate) fn unknown_places(&self) -> Option<String> {
        study::places(self.decided.iter().cloned().collect())
    }

    /// Something that was left for us cannot be read.
    pub(crate) fn unread(&mut self, note: String) {
        self.unread.insert(note);
    }

    /// What a reader should know about what is remembered, and what could not be read.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.unread.iter().take(UNREAD).cloned().collect();
        if UNREAD < self.unread.len() {
            let more = self.unread.len() - UNREAD;
            notes.push(format!("{more} more files of trials cannot be read, or only in part"));
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
