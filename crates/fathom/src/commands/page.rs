//! `fathom page`.

use std::fs;
use std::path::Path;

use ::page::Item;
use answer::Part;
use anyhow::Result;
use serde_json::Value;

use crate::cli::PageArguments;
use crate::error::Hinted;
use crate::outputs::Outputs;
use crate::page::{REPORT, of_recording, with_recordings};
use crate::{load, outcome, screen};

/// Writes the page; 0 if there is one.
pub(crate) fn page(arguments: &PageArguments) -> Result<u8> {
    let to = &arguments.output;
    let mut outputs = Outputs::check(&[("-o", Some(to))])?;
    let (mut items, mut documents) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        refuse_same(path, to)?;
        gather(path, &mut items, &mut documents)?;
    }
    let page = answer::page(items, documents);
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
        match answer::of_json(value, &path.display().to_string(), &name_of(path))? {
            Part::Item(item) => items.push(item),
            Part::Document(document) => documents.push(document),
        }
        return Ok(());
    }
    for (recording, device) in answer::for_page(load::load(path)?, &path.display().to_string())? {
        let mut item = of_recording(recording, path)?;
        if let Some(device) = device {
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
    answer::json(&bytes, &path.display().to_string())
}

pub(super) fn name_of(path: &Path) -> String {
    let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    name.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
