//! Two runs compared, and reports among other JSON.

use anyhow::{Context, Result};
use diff::Side;
use page::Item;
use recording::Recording;
use serde_json::Value;
use study::Wants;

use crate::{Hinted, explanation, item, page};

/// Schemas that hold a peak.
const REPORTS: [&str; 2] = ["fathom.report/1", "fathom.explain/1"];

/// Answers that are shown beside a run.
const DOCUMENTS: [&str; 3] = ["fathom.fit/1", "fathom.sweep/1", "fathom.diff/1"];

/// What can be compared, in words.
pub const SIDES: &str = "compare recordings, memory snapshots, folders that `fathom run --out` wrote, or \
    reports that `--json` wrote";

/// What JSON adds to a page.
pub enum Part {
    /// A run or a file.
    Item(Item),
    /// Another answer.
    Document(Value),
}

/// What a page shows of JSON that a command wrote.
pub fn of_json(value: Value, file: &str, name: &str) -> Result<Part> {
    let schema = value.get("schema").and_then(Value::as_str).unwrap_or_default();
    match schema {
        _ if REPORTS.contains(&schema) => {
            Ok(Part::Item(Item { name: name.to_owned(), report: value, story: None }))
        }
        _ if DOCUMENTS.contains(&schema) => Ok(Part::Document(value)),
        _ => Err(Hinted::error(
            format!("`{file}` is JSON of another kind: its schema is `{schema}`"),
            format!("known are {}, {}", REPORTS.join(", "), DOCUMENTS.join(", ")),
        )),
    }
}

/// One of the two, and what a page shows of it.
pub struct Shown {
    pub side: Side,
    pub item: Item,
}

/// A recording as a side; with what a page needs of it, if there is to be one.
pub fn of_recording(
    recording: Recording,
    file: &str,
    name: &str,
    folder: &str,
    is_page: bool,
) -> Result<Shown> {
    let wants = Wants { floor: true, fragments: is_page, source: is_page, deferred: false };
    let explanation = explanation(recording, file, folder, wants)?;
    let item = match is_page {
        true => item(&explanation, name, folder)?,
        false => Item { name: name.to_owned(), report: Value::Null, story: None },
    };
    let study = explanation.study;
    let mut side = Side::of(&study.anatomy, &study.findings);
    (side.torch, side.settings) = (study.torch, study.settings);
    if study.anatomy.has_names {
        side.notes = study.notes;
        side.totals.floor = study.floor_bytes.filter(|_| !study.anatomy.is_inferred);
    }
    Ok(Shown { side, item })
}

/// A report as a side.
pub fn of_report(report: Value, file: &str, name: &str) -> Result<Shown> {
    let schema = report["schema"].as_str().unwrap_or_default();
    if !REPORTS.contains(&schema) {
        let what = format!("`{file}` is JSON of another kind: its schema is `{schema}`");
        return Err(Hinted::error(what, SIDES));
    }
    let item = Item { name: name.to_owned(), report: report.clone(), story: None };
    let side = report::diff::read(report).map_err(|why| {
        let hint =
            "write the report again: `fathom run --json FILE` or `fathom explain --json FILE`";
        Hinted::error(format!("`{file}` cannot be compared: {why}"), hint)
    })?;
    Ok(Shown { side, item })
}

/// Both sides on one page, with what differs.
pub fn page_of_two(items: [Item; 2], json: &str) -> Result<String> {
    let named = |(letter, item): (&str, Item)| {
        let name = format!("{letter} · {}", item.name);
        Item { name, ..item }
    };
    let items = ["A", "B"].into_iter().zip(items).map(named).collect();
    let mut document: Value = serde_json::from_str(json).context("the difference is no JSON")?;
    // Where on the page the two sides are.
    document["items"] = serde_json::json!([0, 1]);
    Ok(page(items, vec![document]))
}
