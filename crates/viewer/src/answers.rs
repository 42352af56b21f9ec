//! The answers of `fathom explain`, `fathom diff` and `fathom page`, from bytes.

use answer::{Hinted, Opened, Part, Said, WhatIf};
use anyhow::Result;
use infer::NoSources;
use page::Item;
use recording::Recording;
use report::oom::Texts;
use report::{Explanation, Reader, Unfold};
use serde_json::{Value, json};
use study::Wants;

use crate::kept::{Kept, facts};
use crate::request::Request;

/// Columns of the texts.
const COLUMNS: usize = 100;

/// Nothing is shortened from a folder: a browser is in none.
const FOLDER: &str = "";

/// What the viewer shows.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// What the command prints.
    text: String,
    /// What the command writes with `--json`; of several recordings, that of the first.
    json: String,
    /// What `fathom page` writes; none for texts.
    page: Option<String>,
    /// Of each item of the page: what it can be asked further, or why it cannot.
    what_if: Vec<Value>,
    /// What could not be answered, and its cure.
    error: Option<(String, Option<String>)>,
}

impl Answer {
    pub(crate) fn to_json(&self) -> String {
        let error = self.error.as_ref();
        let error = error.map(|(message, hint)| json!({ "message": message, "hint": hint }));
        let Answer { text, json, page, what_if, .. } = self;
        json!({ "text": text, "json": json, "page": page, "what_if": what_if, "error": error })
            .to_string()
    }
}

/// Answers a request as it came from JavaScript; what can be asked further of each item of its page comes with it.
pub(crate) fn answer(bytes: Vec<u8>) -> (Answer, Vec<Kept>) {
    let failed = |error| Answer { error: Some(error), ..Answer::default() };
    let Some(request) = Request::read(bytes) else {
        let message = "the viewer does not understand its own request".to_owned();
        return (failed((message, None)), Vec::new());
    };
    let result = match request.compare {
        true => compare(&request).map(|answer| (answer, Vec::new())),
        false => explain(request),
    };
    result.unwrap_or_else(|error| (failed(Hinted::words(&error)), Vec::new()))
}

/// What files turned out to be.
#[derive(Default)]
struct Gathered {
    texts: Vec<(String, String)>,
    recordings: Vec<(String, Recording)>,
    items: Vec<Item>,
    documents: Vec<Value>,
}

fn gather(request: Request) -> Result<Gathered> {
    let mut all = Gathered::default();
    for (name, bytes) in request.files() {
        if let Some(value) = answer::json(bytes, name).or_else(|error| of_log(bytes, error))? {
            match answer::of_json(value, name, name)? {
                Part::Item(item) => all.items.push(item),
                Part::Document(document) => all.documents.push(document),
            }
            continue;
        }
        match answer::open(bytes, name, &NoSources)? {
            Opened::Text(text) => all.texts.push((name.to_owned(), text)),
            Opened::Recordings(recordings) => {
                let chosen = answer::choose_all(recordings, name, None)?;
                all.recordings.extend(chosen.into_iter().map(|it| (name.to_owned(), it)));
            }
        }
    }
    Ok(all)
}

/// A log may begin with a brace: it is broken JSON only if it is no text about memory.
fn of_log(bytes: &[u8], error: anyhow::Error) -> Result<Option<Value>> {
    match oom_is_in(bytes) {
        true => Ok(None),
        false => Err(error),
    }
}

fn oom_is_in(bytes: &[u8]) -> bool {
    let text = [(String::new(), String::from_utf8_lossy(bytes).into_owned())];
    !answer::entries(&text).is_empty()
}

/// Each file for itself, on one page.
fn explain(request: Request) -> Result<(Answer, Vec<Kept>)> {
    let Gathered { texts, recordings, mut items, documents } = gather(request)?;
    let mut shown = Answer::default();
    let mut explained = Vec::new();
    let wants = Wants { fragments: true, source: true, ..Wants::default() };
    for (name, recording) in recordings {
        explained.push(answer::explanation(recording, &name, FOLDER, wants)?);
    }
    // Reports come first; nothing can be replayed of them.
    let mut kept: Vec<Kept> = items.iter().map(|_| None).collect();
    let shown_of = items_of(&explained)?;
    items.extend(shown_of.iter().map(|(_, item)| item.clone()));
    if let Some(busiest) = busiest(&explained) {
        shown.json = report::explain_json(busiest);
    } else if let Some(item) = items.first() {
        shown.json = item.report.to_string();
    }
    kept.extend(shown_of.iter().map(|(at, _)| explained[*at].study.source.take().map(WhatIf::of)));
    shown.what_if = facts(&kept);
    shown.text = text_of(explained);
    if !texts.is_empty() {
        let (text, json) = of_texts(&texts)?;
        let gap = if shown.text.is_empty() { "" } else { "\n" };
        shown.text = format!("{}{gap}{text}", shown.text);
        if shown.json.is_empty() {
            shown.json = json;
        }
    }
    if !items.is_empty() || !documents.is_empty() {
        shown.page = Some(answer::page(items, documents));
    }
    Ok((shown, kept))
}

/// Those with a trace, the busiest of each file first; of files without one, the state. Each with its number.
fn items_of(explained: &[Explanation]) -> Result<Vec<(usize, Item)>> {
    let mut items = Vec::new();
    let mut first = 0;
    for of_file in explained.chunk_by(|a, b| a.file == b.file) {
        let numbered = || (first..).zip(of_file);
        let mut shown: Vec<(usize, &Explanation)> =
            numbered().filter(|(_, it)| it.study.anatomy.events != 0).collect();
        shown.sort_by_key(|(_, it)| std::cmp::Reverse(it.study.anatomy.events));
        if shown.is_empty() {
            let one = busiest(of_file);
            shown
                .extend(numbered().filter(|(_, it)| one.is_some_and(|one| std::ptr::eq(one, *it))));
        }
        let several = 1 < shown.len();
        for (at, it) in shown {
            let device = it.study.device;
            let name = match several {
                true => format!("{} · device {device}", it.file),
                false => it.file.clone(),
            };
            items.push((at, answer::item(it, &name, FOLDER)?));
        }
        first += of_file.len();
    }
    Ok(items)
}

/// The one whose answer is the file's: as [`answer::choose`] has it.
fn busiest(explained: &[Explanation]) -> Option<&Explanation> {
    explained
        .iter()
        .rev()
        .max_by_key(|it| (it.study.anatomy.events, it.study.anatomy.allocated_peak.allocated))
}

/// As `fathom explain` prints it.
fn text_of(explained: Vec<Explanation>) -> String {
    let mut text = String::new();
    let mut explained = explained;
    if let Some(ranks) = answer::ranks(&explained) {
        text += &report::explain_ranks(&ranks, Reader::plain(COLUMNS));
        text.push('\n');
        explained = answer::in_full(explained, &ranks);
    }
    let each =
        explained.iter().map(|it| report::explain(it, Reader::plain(COLUMNS), &Unfold::default()));
    text + &each.collect::<Vec<_>>().join("\n")
}

fn of_texts(texts: &[(String, String)]) -> Result<(String, String)> {
    let mut answer = Texts { entries: answer::entries(texts), ..Texts::default() };
    if answer.entries.is_empty() {
        return Err(answer::nothing(texts));
    }
    answer.next = answer::next(&answer, texts, &Said::default());
    Ok((report::oom::terminal(&answer, Reader::plain(COLUMNS)), report::oom::json(&answer)))
}

/// Two runs, as `fathom diff` compares them.
fn compare(request: &Request) -> Result<Answer> {
    let mut sides = Vec::new();
    for (name, bytes) in request.files() {
        let mut shown = match answer::json(bytes, name)? {
            Some(report) => answer::of_report(report, name, name)?,
            None => {
                let recordings = answer::recordings(bytes, name, &NoSources)?;
                let recording = answer::choose(recordings, name, None)?;
                answer::of_recording(recording, name, name, FOLDER, true)?
            }
        };
        shown.side.name = name.to_owned();
        sides.push(shown);
    }
    let Ok([a, b]) = <[answer::Shown; 2]>::try_from(sides) else {
        return Err(Hinted::error("two files are compared", answer::SIDES));
    };
    let difference = diff::compare(&a.side, &b.side);
    let json = report::diff::json(&difference);
    let page = answer::page_of_two([a.item, b.item], &json)?;
    let text = report::diff::terminal(&difference, Reader::plain(COLUMNS), false);
    Ok(Answer { text, json, page: Some(page), ..Answer::default() })
}
