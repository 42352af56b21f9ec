//! `fathom diff`.

use std::path::Path;

use anyhow::{Context, Result};
use diff::Side;
use recording::Recording;
use report::Palette;
use serde_json::Value;

use super::explanation;
use super::page::{gather, json_of, refuse_same};
use crate::cli::DiffArguments;
use crate::dissect::smallest_card;
use crate::error::Hinted;
use crate::outputs::Outputs;
use crate::page::{REPORT, render};
use crate::{load, outcome};

/// Schemas that hold a peak.
const REPORTS: [&str; 2] = ["fathom.report/1", "fathom.explain/1"];

/// What can be compared, in words.
const SIDES: &str = "compare recordings, memory snapshots, folders that `fathom run --out` wrote, or \
    reports that `--json` wrote";

/// Compares two runs; 0 if there is an answer.
pub(crate) fn diff(arguments: &DiffArguments) -> Result<u8> {
    for to in [&arguments.json, &arguments.markdown, &arguments.page].into_iter().flatten() {
        [&arguments.a, &arguments.b].into_iter().try_for_each(|from| refuse_same(from, to))?;
    }
    let mut outputs = Outputs::check(&[
        ("--json", arguments.json.as_deref()),
        ("--markdown", arguments.markdown.as_deref()),
        ("--page", arguments.page.as_deref()),
    ])?;
    let a = side(&arguments.a, arguments.device)?;
    let b = side(&arguments.b, arguments.device)?;
    let difference = diff::compare(&a, &b);
    let json = report::diff::json(&difference);
    if let Some(path) = &arguments.page
        && let Some(page) = outputs.note(page(arguments, &json))
    {
        outputs.file(path, page);
    }
    if let Some(path) = &arguments.markdown {
        outputs.file(path, report::diff::markdown(&difference));
    }
    if outputs.json(arguments.json.as_deref(), || json) {
        outputs.print(&report::diff::terminal(&difference, Palette::coloured(), arguments.all));
    }
    Ok(outputs.finish(0))
}

/// One of the two.
fn side(path: &Path, device: Option<u32>) -> Result<Side> {
    let mut side = match path.is_dir() {
        true => of_folder(path, device)?,
        false => match json_of(path)? {
            Some(report) => of_report(report, path)?,
            None => of_recording(&load::choose(load::load(path)?, path, device)?, path)?,
        },
    };
    side.name = path.display().to_string();
    Ok(side)
}

/// A folder that `fathom run --out` wrote: the recording of the process that used its card most, and
/// what its report says of the card.
fn of_folder(path: &Path, device: Option<u32>) -> Result<Side> {
    let report = json_of(&path.join(REPORT)).ok().flatten();
    let report = report.map(|report| of_report(report, &path.join(REPORT))).transpose();
    let Some(file) = outcome::recordings(path).into_iter().next() else {
        return report?.ok_or_else(|| {
            let what = format!("`{}` holds no recording and no `{REPORT}`", path.display());
            Hinted::error(what, SIDES)
        });
    };
    let recording = load::choose(load::load(&file)?, &file, device)?;
    let mut side = of_recording(&recording, &file)?;
    if let Ok(Some(report)) = report {
        side.totals.device = report.totals.device;
        side.totals.floor = report.totals.floor;
        side.card = report.card;
        side.ran_out = report.ran_out;
        let (seen, counted) = (side.totals.allocated, report.totals.allocated);
        if counted != 0 && seen != counted {
            let [seen, counted] = [seen, counted].map(report::bytes::text);
            side.notes.push(format!("the recording saw {seen} of a peak of {counted}"));
        }
    }
    Ok(side)
}

fn of_recording(recording: &Recording, path: &Path) -> Result<Side> {
    let explanation = explanation(recording, path)?;
    let mut side = Side::of(&explanation.anatomy, &explanation.findings);
    side.torch = recording.about.torch.clone();
    side.settings = recording.about.allocator_settings.clone();
    if explanation.anatomy.has_names {
        side.notes = explanation.notes;
        side.totals.floor = smallest_card(recording);
    }
    Ok(side)
}

fn of_report(report: Value, path: &Path) -> Result<Side> {
    let schema = report["schema"].as_str().unwrap_or_default();
    if !REPORTS.contains(&schema) {
        let what =
            format!("`{}` is JSON of another kind: its schema is `{schema}`", path.display());
        return Err(Hinted::error(what, SIDES));
    }
    report::diff::read(report).map_err(|why| {
        let hint =
            "write the report again: `fathom run --json FILE` or `fathom explain --json FILE`";
        Hinted::error(format!("`{}` cannot be compared: {why}", path.display()), hint)
    })
}

/// Both sides on one page, with what differs.
fn page(arguments: &DiffArguments, json: &str) -> Result<String> {
    let mut items = Vec::new();
    for (letter, path) in [("A", &arguments.a), ("B", &arguments.b)] {
        let first = items.len();
        gather(path, &mut items, &mut Vec::new())?;
        // The busiest of a side comes first; the others are not compared.
        items.truncate(first + 1);
        if let Some(item) = items.get_mut(first) {
            item.name = format!("{letter} · {}", item.name);
        }
    }
    let mut document: Value = serde_json::from_str(json).context("the difference is no JSON")?;
    // Where on the page the two sides are.
    document["items"] = serde_json::json!([0, 1]);
    Ok(render(items, vec![document]))
}
