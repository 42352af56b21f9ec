//! A recording studied: what `fathom explain` says of it, and what a page shows.

use anyhow::Result;
use diff::Side;
use page::{Bundle, Item, Story};
use recording::Recording;
use report::{Explanation, RankedSides};
use serde_json::Value;
use study::{Context, Source, Study, Wants};

use crate::Hinted;

/// A recording studied, with what its file does not tell. Files in `folder` are named from there.
pub fn explanation(
    recording: Recording,
    file: &str,
    folder: &str,
    wants: Wants,
) -> Result<Explanation> {
    let context = Context { folder: folder.to_owned(), wants, ..Context::default() };
    let mut study = study::study(recording, &context).map_err(|why| {
        let hint = "settings of PyTorch's native allocator, torch 1.13 and newer, can be replayed";
        Hinted::error(format!("`{file}`: {why}"), hint)
    })?;
    let is_ours = study.anatomy.has_names;
    if study.anatomy.events == 0 {
        study.notes.push(
            "the state of one moment: what was held at other moments is not in the file".to_owned(),
        );
    }
    if is_ours && !study.is_whole {
        study.notes.push("the recording ends before its process did".to_owned());
    }
    if !is_ours {
        study.notes.push(
            "snapshots carry no tensor names, so categories are unknown; `fathom run` records them"
                .to_owned(),
        );
    }
    if study.anatomy.is_inferred {
        study.notes.push(
            "snapshots carry no tensor names; categories, modules and phases are inferred: \
             `fathom run` records them"
                .to_owned(),
        );
    }
    Ok(Explanation { file: file.to_owned(), study, answers: Vec::new(), next: None })
}

/// Several cards, ranks or files side by side; `None` if there is only one.
pub fn ranks(studied: &[Explanation]) -> Option<RankedSides> {
    let is_one_file = studied.windows(2).all(|pair| matches!(pair, [a, b] if a.file == b.file));
    let side = |explanation: &Explanation| {
        let (file, study) = (&explanation.file, &explanation.study);
        let mut side = Side::of(&study.anatomy, &study.findings);
        let several = studied.iter().filter(|other| other.file == *file).count();
        let name = last_part(file);
        side.name = match several {
            1 => name,
            _ if is_one_file => format!("device {}", study.device),
            _ => format!("{name} device {}", study.device),
        };
        side
    };
    RankedSides::of(studied.iter().map(side).collect())
}

/// So many recordings are explained in full; of more, the one that needs most.
const IN_FULL: usize = 2;

/// Which of several are explained in full, given how they compare.
pub fn in_full(mut studied: Vec<Explanation>, ranks: &RankedSides) -> Vec<Explanation> {
    match IN_FULL < studied.len() && ranks.worst() < studied.len() {
        true => vec![studied.swap_remove(ranks.worst())],
        false => studied,
    }
}

/// A file's name without its folders.
fn last_part(file: &str) -> String {
    let last = file.trim_end_matches('/').rsplit('/').next().unwrap_or(file);
    if last.is_empty() { file.to_owned() } else { last.to_owned() }
}

/// The recordings of a file that a page shows, each with its name there: those with a trace, the busiest
/// first, whose numbers are the first that are seen; else the state of one.
pub fn for_page(
    mut recordings: Vec<Recording>,
    name: &str,
) -> Result<Vec<(Recording, Option<u32>)>> {
    if recordings.iter().any(|recording| recording.trace_length() != 0) {
        recordings.retain(|recording| recording.trace_length() != 0);
        recordings.sort_by_key(|recording| std::cmp::Reverse(recording.trace_length()));
    } else {
        recordings = vec![crate::choose(recordings, name, None)?];
    }
    let several = 1 < recordings.len();
    let with_device = |recording: Recording| {
        let device = several.then_some(recording.about.device);
        (recording, device)
    };
    Ok(recordings.into_iter().map(with_device).collect())
}

/// A file that is explained, with its story if the study kept its source.
pub fn item(explanation: &Explanation, name: &str, folder: &str) -> Result<Item> {
    let report = serde_json::from_str(&report::explain_json(explanation))?;
    Ok(Item { name: name.to_owned(), report, story: story_of(&explanation.study, folder) })
}

/// `None` if a study did not keep its source.
pub fn story_of(study: &Study, folder: &str) -> Option<Story> {
    let Source { recording, timeline, .. } = study.source.as_ref()?;
    Some(Story::of(recording, timeline, &study.anatomy, folder))
}

/// The page of some items and of other answers.
pub fn page(items: Vec<Item>, documents: Vec<Value>) -> String {
    let command = documents.first().and_then(|document| document["command"].as_str());
    let first = items.first().map_or(command.unwrap_or_default(), |item| &item.name);
    let title = if first.is_empty() { "Fathom".to_owned() } else { format!("{first} · Fathom") };
    page::render(&Bundle { title, items, documents })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the viewer answers: the text, the JSON and the page follow from one replay.
    #[test]
    fn a_recording_is_replayed_once() {
        let text = "torch 2.15.0\nsegment_alloc 0x1000000 20971520\nalloc 0x1000000 4194304";
        let recording = recording::text::recording(text).unwrap();
        let before = allocator::reproduced();
        let wants = Wants { fragments: true, floor: true, deferred: true, source: true };
        let explained = explanation(recording, "run.fathom", "", wants).unwrap();
        let shown = report::explain(&explained, report::Reader::plain(80), &Default::default());
        let page = page(vec![item(&explained, "run.fathom", "").unwrap()], Vec::new());
        assert!(shown.contains("4.0 MiB") && page.contains("run.fathom"));
        assert_eq!(allocator::reproduced(), before + 1);
    }
}
