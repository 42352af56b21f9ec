//! What goes into a page: reports, with the stories of their recordings.

use std::path::Path;

use ::page::{Bundle, Item, Story};
use allocator::{Settings, reproduce};
use anatomy::Anatomy;
use anyhow::Result;
use recording::Recording;
use report::Run;
use serde_json::Value;

use crate::commands::explanation;
use crate::outcome;
use crate::{dissect, load};

/// The report in a folder that `fathom run --out` wrote.
pub(crate) const REPORT: &str = "report.json";

/// The page of some items and of other answers.
pub(crate) fn render(items: Vec<Item>, documents: Vec<Value>) -> String {
    let first = items.first().map_or("", |item| &item.name);
    let title = if first.is_empty() { "Fathom".to_owned() } else { format!("{first} · Fathom") };
    ::page::render(&Bundle { title, items, documents })
}

/// A run that has just ended, and the other recordings that its processes left.
pub(crate) fn of_run(run: &Run, folder: &Path, name: &str) -> Vec<Item> {
    let report = serde_json::from_str(&report::json(run)).unwrap_or_default();
    with_recordings(report, folder, name)
}

/// A report with the recordings of its folder: the first is its own, the others stand for themselves.
pub(crate) fn with_recordings(report: Value, folder: &Path, name: &str) -> Vec<Item> {
    let mut report = Some(report);
    let mut items = Vec::new();
    for path in outcome::recordings(folder) {
        let Some(recording) = load::load(&path).ok().and_then(|mut all| all.pop()) else {
            continue;
        };
        let story = dissect::dissect(&recording).ok();
        let story = story.and_then(|(anatomy, _)| story_of(&recording, &anatomy));
        if let Some(report) = report.take() {
            items.push(Item { name: name.to_owned(), report, story });
        } else if let Ok(item) = of_recording(&recording, &path) {
            items.push(item);
        }
    }
    items.extend(report.map(|report| Item { name: name.to_owned(), report, story: None }));
    items
}

/// A recording without a run around it.
pub(crate) fn of_recording(recording: &Recording, path: &Path) -> Result<Item> {
    let explanation = explanation(recording, path)?;
    let report = serde_json::from_str(&report::explain_json(&explanation))?;
    let story = story_of(recording, &explanation.anatomy);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Item { name, report, story })
}

/// `None` if the recording cannot be replayed.
fn story_of(recording: &Recording, anatomy: &Anatomy) -> Option<Story> {
    let settings = Settings::of(&recording.about).ok()?;
    let timeline = reproduce(recording, &settings).timeline;
    let folder = std::env::current_dir().map_or(String::new(), |at| format!("{}/", at.display()));
    Some(Story::of(recording, &timeline, anatomy, &folder))
}
