//! The doctor tries what it says: a script on the phantom imports torch, makes a tensor, convolves and compiles.

use std::fs;
use std::path::Path;

use anyhow::Result;
use contract::status::Reading;

use crate::launch::Launch;
use crate::python;
use crate::screen;
use crate::session::{Folder, Streams};
use crate::settings::{Settings, Typed};

use super::Mark;

const SCRIPT: &str = include_str!("try.py");

/// `torch.compile` on a slow machine takes most of it.
const SECONDS: u64 = 240;

/// A row of what was tried.
pub(super) struct Row {
    pub(super) mark: Mark,
    pub(super) label: String,
    pub(super) text: String,
}

impl Row {
    fn new(mark: Mark, label: &str, text: impl Into<String>) -> Row {
        Row { mark, label: label.to_owned(), text: text.into() }
    }
}

/// Runs the script with the user's own settings, without a limit of memory.
pub(super) fn all(launch: &Launch, command: &[String]) -> Result<Vec<Row>> {
    let Some(program) = python::interpreter(command) else {
        return Ok(vec![Row::new(Mark::Note, "trial", "not made: its Python is not known")]);
    };
    screen::say("fathom: trying this torch on the phantom GPU; it takes some seconds");
    let folder = Folder::new("doctor")?;
    let (said, printed) = (folder.path().join("said"), folder.path().join("printed"));
    let settings = Settings::resolve(&Typed::default())?.for_trials();
    let settings = Settings { steps: 0, record: false, timeout: Some(SECONDS), ..settings };
    let torch = launch.python.as_ref().and_then(|python| python.torch.as_ref());
    let Some(packages) = torch.and_then(|torch| torch.folder.parent()) else {
        return Ok(vec![Row::new(Mark::Note, "trial", "not made: no torch was found")]);
    };
    // Nothing of the user's runs: neither the working folder nor PYTHONPATH, nor what `site` would start.
    let (program, said) = (program.to_string_lossy(), said.to_string_lossy());
    let words = [&*program, "-I", "-S", "-c", SCRIPT, &*said, &*packages.to_string_lossy()];
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let ended = launch.run_with(
        &words,
        &settings,
        folder.path(),
        Streams::to_file(&printed)?,
        &crate::jobs::Started::default(),
    )?;
    let mut rows = rows(&fs::read_to_string(&*said).unwrap_or_default());
    if !ended.status.success() || rows.is_empty() {
        let printed = fs::read_to_string(&printed).unwrap_or_default();
        let last =
            printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
        rows.push(Row::new(
            Mark::Fail,
            "phantom",
            format!("the trial ended early: {}", last.trim()),
        ));
    } else if rows.iter().any(|row| row.label == "conv" && row.mark == Mark::Ok) {
        rows.push(cudnn(folder.path(), launch));
    }
    Ok(rows)
}

fn rows(said: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let mark = match parts.next()? {
            "ok" => Mark::Ok,
            "note" => Mark::Note,
            _ => Mark::Fail,
        };
        Some(Row::new(mark, parts.next()?, parts.next()?))
    };
    said.lines().filter_map(row).collect()
}

/// Whether the real cuDNN answered, as the status page of the process says.
fn cudnn(folder: &Path, launch: &Launch) -> Row {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let pages = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("phantom."));
    let readings = pages.filter_map(|page| Reading::parse(&fs::read(page.path()).ok()?).ok());
    let version = readings.map(|page| page.cudnn_version).max().unwrap_or(0);
    let torch = launch.python.as_ref().and_then(|python| python.torch.as_ref());
    let is_installed = torch.is_some_and(|torch| torch.cudnn.is_some());
    match (version, is_installed) {
        (0, false) => Row::new(Mark::Note, "cuDNN", "not asked: it is not installed"),
        (0, true) => Row::new(
            Mark::Note,
            "cuDNN",
            "it is installed, but did not answer: convolution workspaces are modelled",
        ),
        (version, _) => {
            let (major, minor) = (version / 10_000, version / 100 % 100);
            Row::new(
                Mark::Ok,
                "cuDNN",
                format!("cuDNN {major}.{minor} answered for this convolution"),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_rows_and_others_are_passed_over() {
        let rows = rows("ok\timport\tworks\nFAIL\ttensor\tOutOfMemory: a\tb\nnothing\n");
        let marks: Vec<_> = rows.iter().map(|row| (row.mark, row.label.as_str())).collect();
        assert_eq!(marks, [(Mark::Ok, "import"), (Mark::Fail, "tensor")]);
        assert_eq!(rows[1].text, "OutOfMemory: a\tb");
    }
}
