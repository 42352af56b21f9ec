//! The scripts of a check as jobs: each is shown when it and all before it have ended.

use std::collections::BTreeMap;

use anyhow::Result;
use report::check::{self, Check};
use study::Verdict;

use super::Entry;
use crate::jobs::Queue;
use crate::outputs::Outputs;
use crate::screen;

/// Which scripts have run, and which are shown.
pub(super) struct Checks<'a> {
    entries: &'a [Entry],
    is_text: bool,
    outputs: &'a mut Outputs,
    /// The next script to run.
    next: usize,
    is_interrupted: bool,
    /// Scripts that have ended before one in front of them.
    early: BTreeMap<usize, (Check, String)>,
    shown: Vec<Check>,
}

impl Queue for Checks<'_> {
    type Job = usize;
    type Answer = Result<(Check, String)>;

    fn next(&mut self, _: &[&usize]) -> Option<usize> {
        let next = (self.next..self.entries.len()).next().filter(|_| !self.is_interrupted)?;
        self.next += 1;
        Some(next)
    }

    fn ended(&mut self, index: &usize, answer: Self::Answer) -> Result<()> {
        let (check, last) = answer?;
        self.is_interrupted |= check.run.verdict == Verdict::Interrupted;
        self.early.insert(*index, (check, last));
        while let Some((check, last)) = self.early.remove(&self.shown.len()) {
            self.show(check, &last);
            self.announce();
        }
        Ok(())
    }
}

impl<'a> Checks<'a> {
    pub(super) fn new(entries: &'a [Entry], is_text: bool, outputs: &'a mut Outputs) -> Checks<'a> {
        let (early, shown) = (BTreeMap::new(), Vec::new());
        Checks { entries, is_text, outputs, next: 0, is_interrupted: false, early, shown }
    }

    /// Says which script is waited for.
    pub(super) fn announce(&self) {
        let (at, count) = (self.shown.len(), self.entries.len());
        let is_to_come = !self.is_interrupted || at < self.next;
        if let Some(entry) = self.entries.get(at).filter(|_| is_to_come) {
            screen::say(&format!("fathom: {} ({} of {count})", entry.name, at + 1));
        }
    }

    fn show(&mut self, check: Check, last: &str) {
        if check.run.verdict == Verdict::ScriptFailed {
            last.lines().for_each(screen::say);
        }
        let gate = &self.entries[self.shown.len()].gate;
        if let Some(path) = self.outputs.note(gate.save(&check.run)).flatten() {
            screen::say(&format!("fathom: wrote {}", path.display()));
        }
        if self.is_text {
            self.outputs.print(&check::row(&check, screen::reader()));
        }
        self.shown.push(check);
    }

    /// All that ran; what did not is said.
    pub(super) fn finish(self) -> Vec<Check> {
        let rest: Vec<&str> =
            self.entries[self.shown.len()..].iter().map(|entry| entry.name.as_str()).collect();
        if !rest.is_empty() {
            screen::say(&format!("fathom: not run any more: {}", rest.join(", ")));
        }
        self.shown
    }
}
