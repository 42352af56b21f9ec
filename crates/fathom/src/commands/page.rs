//! `fathom page`.

use std::fs;
use std::path::Path;

use ::page::Item;
use anyhow::Result;
use serde_json::Value;

use crate::cli::PageArguments;
use crate::error::Hinted;
use crate::outputs::Outputs;
use crate::page::{REPORT, of_recording, render, with_recordings};
use crate::{load, outcome, screen};

/// Answers that are shown beside a run.
const DOCUMENTS: [&str; 3] = ["fathom.fit/1", "fathom.sweep/1", "fathom.diff/1"];

/// Writes the page; 0 if there is one.
pub(crate) fn page(arguments: &PageArguments) -> Result<u8> {
    let to = &arguments.output;
    let mut outputs = Outputs::check(&[("-o", Some(to))])?;
    let (mut items, mut documents) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        refuse_same(path, to)?;
        gather(path, &mut items, &mut documents)?;
    }
    let page = render(items, documents);
    outputs.file(to, &page);
    let size = report::bytes::text(page.len() as u64);
    outputs.print(&format!("{} ({size})\n", report::visible(&to.to_string_lossy())));
    Ok(outputs.finish(0))
}

/// What is read is not written over.
pub(super) fn refuse_same(from: &Path, to: &Path) -> Result<()> {
    match (from.canonicalize(), to.canonicalize()) {
        (Ok(one), Ok(other)) if one == other => Err(Hinted::error(
            format!("`{}` is both read and written", to.display()),
            "name another file to write, e.g. with `-o`: this one would be lost",
        )),
        _ => Ok(()),
    }
}

/// What one path has for the page.
fn gather(path: &Path, items: &mut Vec<Item>, documents: &mut Vec<Value>) -> Result<()> {
    if path.is_dir() {
        items.extend(of_folder(path)?);
        return Ok(());
    }
    if let Some(value) = json_of(path)? {
        let schema = value["schema"].as_str().unwrap_or_default().to_owned();
        match schema.as_str() {
            "fathom.report/1" | "fathom.explain/1" => {
                items.push(Item { name: name_of(path), report: value, story: None });
            }
            schema if DOCUMENTS.contains(&schema) => documents.push(value),
            _ => {
                return Err(Hinted::error(
                    format!(
                        "`{}` is JSON of another kind: its schema is `{schema}`",
                        path.display()
                    ),
                    format!(
                        "known are fathom.report/1, fathom.explain/1, {}",
                        DOCUMENTS.join(", ")
                    ),
                ));
            }
        }
        return Ok(());
    }
    let mut recordings = load::load(path)?;
    if recordings.iter().any(|recording| recording.trace_length() != 0) {
        recordings.retain(|recording| recording.trace_length() != 0);
        // The busiest first: its numbers are the first that are seen.
        recordings.sort_by_key(|recording| std::cmp::Reverse(recording.trace_length()));
    } else {
        recordings = vec![load::choose(recordings, path, None)?];
    }
    let several = 1 < recordings.len();
    for recording in recordings {
        let device = recording.about.device;
        let mut item = of_recording(recording, path)?;
        if several {
            item.name = format!("{} · device {device}", item.name);
        }
        items.push(item);
    }
    Ok(())
}

/// A folder that `fathom run --out` wrote: its report and recordings.
fn of_folder(path: &Path) -> Result<Vec<Item>> {
    let name = name_of(path);
    match json_of(&path.join(REPORT)) {
        Ok(Some(report)) => return Ok(with_recordings(report, path, &name)),
        Ok(None) => {}
        Err(error) => screen::say(&format!("fathom: the page goes without the report: {error}")),
    }
    let mut items = Vec::new();
    for file in outcome::recordings(path) {
        let recordings = load::load(&file)?;
        items.push(of_recording(load::choose(recordings, &file, None)?, &file)?);
    }
    match items.is_empty() {
        false => Ok(items),
        true => Err(Hinted::error(
            format!("`{}` holds no recording and no `{REPORT}`", path.display()),
            "name a folder that `fathom run --out` wrote",
        )),
    }
}

/// The file as JSON; `None` if it is something else.
pub(super) fn json_of(path: &Path) -> Result<Option<Value>> {
    // What cannot be read is reported by whoever reads it as a recording.
    let Ok(bytes) = fs::read(path) else { return Ok(None) };
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Ok(None);
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        Hinted::error(
            format!("`{}` is not whole JSON: {error}", path.display()),
            "write it again with `--json`",
        )
    })
}

pub(super) fn name_of(path: &Path) -> String {
    let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    name.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
