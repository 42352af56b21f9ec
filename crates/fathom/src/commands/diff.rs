//! `fathom diff`.

use std::path::{Path, PathBuf};

use ::page::Item;
use answer::Shown;
use anyhow::{Context, Result};
use recording::Recording;
use report::RankedSides;
use serde_json::Value;

use super::page::{json_of, name_of, refuse_same};
use crate::cli::DiffArguments;
use crate::error::Hinted;
use crate::outputs::Outputs;
use crate::page::REPORT;
use crate::screen;
use crate::{here, load, outcome};

/// Compares two runs; 0 if there is an answer.
pub(crate) fn diff(arguments: &DiffArguments) -> Result<u8> {
    for to in [&arguments.source.json, &arguments.markdown, &arguments.page].into_iter().flatten() {
        files(arguments).try_for_each(|from| refuse_same(from, to))?;
    }
    let mut outputs = Outputs::check(&[
        ("--json", arguments.source.json.as_deref()),
        ("--markdown", arguments.markdown.as_deref()),
        ("--page", arguments.page.as_deref()),
    ])?;
    let is_page = arguments.page.is_some();
    let device = arguments.source.device;
    let (a, b) = match arguments.more.is_empty() {
        true => (shown(&arguments.a, device, is_page)?, shown(&arguments.b, device, is_page)?),
        false => most_different(arguments, is_page, &mut outputs)?,
    };
    let difference = diff::compare(&a.side, &b.side);
    let json = report::diff::json(&difference);
    if let Some(path) = &arguments.page
        && let Some(page) = outputs.note(answer::page_of_two([a.item, b.item], &json))
    {
        outputs.file(path, page);
    }
    if let Some(path) = &arguments.markdown {
        outputs.file(path, report::diff::markdown(&difference));
    }
    if outputs.json(arguments.source.json.as_deref(), || json) {
        outputs.print(&report::diff::terminal(&difference, screen::reader(), arguments.all));
    }
    Ok(outputs.finish(0))
}

/// All files that are named.
fn files(arguments: &DiffArguments) -> impl Iterator<Item = &PathBuf> {
    [&arguments.a, &arguments.b].into_iter().chain(&arguments.more)
}

/// Of many ranks those that need least and most; all of them are listed, if standard output is for people.
fn most_different(
    arguments: &DiffArguments,
    is_page: bool,
    outputs: &mut Outputs,
) -> Result<(Shown, Shown)> {
    let device = arguments.source.device;
    let all: Result<Vec<Shown>> = files(arguments).map(|it| shown(it, device, is_page)).collect();
    let mut all = all?;
    let sides = all.iter().map(|shown| shown.side.clone()).collect();
    let ranks = RankedSides::of(sides).context("there is nothing to compare")?;
    if arguments.source.json.as_deref() != Some(Path::new("-")) {
        outputs.print(&report::explain_ranks(&ranks, screen::reader()));
        outputs.print("\n");
    }
    // Of equal ones both are the first: then it is compared with the next.
    let worst = ranks.worst();
    let least = if ranks.least() == worst { usize::from(worst == 0) } else { ranks.least() };
    let b = all.remove(worst);
    let a = all.swap_remove(if worst < least { least - 1 } else { least });
    Ok((a, b))
}

/// One of the two, with its story if a page is wanted.
fn shown(path: &Path, device: Option<u32>, is_page: bool) -> Result<Shown> {
    let mut shown = match path.is_dir() {
        true => of_folder(path, device, is_page)?,
        false => match json_of(path)? {
            Some(report) => of_report(report, path)?,
            None => of_recording(load::choose(load::load(path)?, path, device)?, path, is_page)?,
        },
    };
    shown.side.name = path.display().to_string();
    Ok(shown)
}

/// A folder that `fathom run --out` wrote: the recording of the process that used its card most, and
/// what its report says of the card.
fn of_folder(path: &Path, device: Option<u32>, is_page: bool) -> Result<Shown> {
    let report = json_of(&path.join(REPORT)).ok().flatten();
    let report = report.map(|report| of_report(report, &path.join(REPORT))).transpose();
    let Some(file) = outcome::recordings(path).into_iter().next() else {
        return report?.ok_or_else(|| {
            let what = format!("`{}` holds no recording and no `{REPORT}`", path.display());
            Hinted::error(what, answer::SIDES)
        });
    };
    let recording = load::choose(load::load(&file)?, &file, device)?;
    let mut shown = of_recording(recording, &file, is_page)?;
    if let Ok(Some(report)) = report {
        let side = &mut shown.side;
        side.totals.device = report.side.totals.device;
        side.totals.floor = report.side.totals.floor;
        side.card = report.side.card;
        side.ran_out = report.side.ran_out;
        let (seen, counted) = (side.totals.allocated, report.side.totals.allocated);
        if counted != 0 && seen != counted {
            let [seen, counted] = [seen, counted].map(report::bytes::text);
            side.notes.push(format!("the recording saw {seen} of a peak of {counted}"));
        }
        shown.item = Item { name: name_of(path), story: shown.item.story, ..report.item };
    }
    Ok(shown)
}

fn of_recording(recording: Recording, path: &Path, is_page: bool) -> Result<Shown> {
    let file = path.display().to_string();
    answer::of_recording(recording, &file, &name_of(path), &here::folder(), is_page)
}

fn of_report(report: Value, path: &Path) -> Result<Shown> {
    answer::of_report(report, &path.display().to_string(), &name_of(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both sides and their page: each recording is played once.
    #[test]
    fn a_recording_is_replayed_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.fathom");
        let text = "torch 2.15.0\nsegment_alloc 0x1000000 20971520\nalloc 0x1000000 4194304";
        let recording = recording::text::recording(text).unwrap();
        std::fs::write(&path, recording::file::write(&recording)).unwrap();
        let before = allocator::reproduced();
        let [a, b] = [(); 2].map(|()| shown(&path, None, true).unwrap());
        let json = report::diff::json(&diff::compare(&a.side, &b.side));
        let page = answer::page_of_two([a.item, b.item], &json).unwrap();
        assert!(page.contains("run.fathom") && allocator::reproduced() == before + 2);
    }
}
