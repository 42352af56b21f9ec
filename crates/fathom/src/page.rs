//! What goes into a page: reports, with the stories of their recordings.

use std::path::Path;

use ::page::{Item, Story};
use anyhow::Result;
use recording::Recording;
use serde_json::Value;
use study::{Run, Study, Wants};

use crate::commands::explanation;
use crate::{here, load, outcome, screen, shell};

/// The report in a folder that `fathom run --out` wrote.
pub(crate) const REPORT: &str = "report.json";

/// A run that has just ended, and the other recordings that its processes left.
pub(crate) fn of_run(run: &Run, folder: &Path, name: &str) -> Vec<Item> {
    let report = serde_json::from_str(&report::json(run)).unwrap_or_default();
    let story = run.study.as_ref().and_then(story_of);
    let mut items = vec![Item { name: name.to_owned(), report, story }];
    // The first is the run's own: it was studied for its report.
    let others = outcome::recordings(folder).into_iter().skip(usize::from(run.study.is_some()));
    items.extend(others.filter_map(|path| item_of(&path)));
    items
}

/// A report with the recordings of its folder: the first is its own, the others stand for themselves.
pub(crate) fn with_recordings(report: Value, folder: &Path, name: &str) -> Vec<Item> {
    let mut recordings = outcome::recordings(folder).into_iter();
    let own = recordings.next().and_then(|path| item_of(&path));
    let story = own.and_then(|item| item.story);
    let mut items = vec![Item { name: name.to_owned(), report, story }];
    items.extend(recordings.filter_map(|path| item_of(&path)));
    items
}

/// The answer of many trials, with the command that gives it again.
pub(crate) fn of_trials(json: &str) -> String {
    let mut document: Value = serde_json::from_str(json).unwrap_or_default();
    document["command"] = Value::from(typed());
    answer::page(Vec::new(), vec![document])
}

/// This command as it can be typed again.
fn typed() -> String {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    shell::line(["fathom"].into_iter().chain(words.iter().map(String::as_str)))
}

/// One of several recordings: a page without it is better than none, if that is said.
fn item_of(path: &Path) -> Option<Item> {
    let item = load::load(path)
        .and_then(|mut all| all.pop().map(|recording| of_recording(recording, path)).transpose());
    item.unwrap_or_else(|error| {
        let shown = path.display();
        screen::say(&format!("fathom: the page goes without `{shown}`: {error:#}"));
        None
    })
}

/// A recording without a run around it.
pub(crate) fn of_recording(recording: Recording, path: &Path) -> Result<Item> {
    let wants = Wants { fragments: true, source: true, ..Wants::default() };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    answer::item(&explanation(recording, path, wants)?, &name, &here::folder())
}

fn story_of(study: &Study) -> Option<Story> {
    answer::story_of(study, &here::folder())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording() -> Recording {
        let text = "torch 2.15.0\nsegment_alloc 0x1000000 20971520\nalloc 0x1000000 4194304\n\
                    free_requested 0x1000000 4194304\nfree_completed 0x1000000 4194304";
        recording::text::recording(text).unwrap()
    }

    /// `fathom run --page`: the study that the report was made of has the story, too.
    #[test]
    fn the_recording_of_a_run_is_replayed_once() {
        let wants = Wants { fragments: true, floor: true, deferred: true, source: true };
        let before = allocator::reproduced();
        let context = study::Context { wants, ..study::Context::default() };
        let study = study::study(recording(), &context).unwrap();
        assert!(story_of(&study).is_some());
        assert_eq!(allocator::reproduced(), before + 1);
    }

    /// Pieces, story and report of one replay.
    #[test]
    fn a_recording_is_replayed_once() {
        let recording = recording();
        let before = allocator::reproduced();
        let item = of_recording(recording, Path::new("run.fathom")).unwrap();
        assert_eq!(allocator::reproduced(), before + 1);
        assert!(item.story.is_some() && item.report["fragments"]["pools"][0]["segments"] == 1);
    }
}
