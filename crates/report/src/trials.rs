//! How the trials of `fathom fit` and `fathom sweep` went: the same fields and the same last lines in both answers.

use anstyle::Style;
use serde::Serialize;

use crate::json::Unfinished;
use crate::lines::Lines;

/// What is said of all trials together.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    /// That were run.
    pub run: usize,
    /// Whose answer was remembered.
    pub remembered: usize,
    /// What ended them before they were over, if something did.
    pub unfinished: Option<study::Unfinished>,
    /// From start to end.
    pub wall_seconds: f64,
    /// Where values were read that nobody knows, if some of what fits rests on them.
    pub unknown_places: Option<String>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Their part of the JSON.
#[derive(Serialize)]
pub(crate) struct TrialsMirror<'a> {
    /// What is not known because of it says so itself: points are `not_run`, a better plan may be missing.
    unfinished: Option<Unfinished<'a>>,
    unknown_places: Option<&'a str>,
    wall_seconds: f64,
    notes: &'a [String],
}

impl Trials {
    pub(crate) fn mirror(&self) -> TrialsMirror<'_> {
        TrialsMirror {
            unfinished: self.unfinished.as_ref().map(Unfinished::of),
            unknown_places: self.unknown_places.as_deref(),
            wall_seconds: self.wall_seconds,
            notes: &self.notes,
        }
    }

    /// The last lines of an answer.
    pub(crate) fn close(&self, lines: &mut Lines) {
        let Self { run, remembered, wall_seconds, .. } = self;
        let count = format!("{run} run, {remembered} remembered, {wall_seconds:.1} s");
        lines.section(Style::new(), "trials", [count]);
        for note in &self.notes {
            lines.section(Style::new(), "note", note.lines());
        }
    }
}
