//! Files that are read: the doorway from paths to `answer`.

// What is read here may come from anyone.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use answer::{LONGEST_TEXT, Opened};
use anyhow::Result;
use recording::Recording;

use crate::error::Hinted;

/// Reads a file, or standard input if it is named `-`; what it is, its first bytes say.
pub(crate) fn load_any(path: &Path) -> Result<Opened> {
    let bytes = if path == Path::new("-") { standard_input()? } else { read(path)? };
    answer::open(&bytes, &path.display().to_string(), &PythonFiles)
}

/// The recordings of a file, one for each device with anything in it.
pub(crate) fn load(path: &Path) -> Result<Vec<Recording>> {
    answer::recordings(&read(path)?, &path.display().to_string(), &PythonFiles)
}

/// The recording of a device, or the busiest one: see [`answer::choose`].
pub(crate) fn choose(
    recordings: Vec<Recording>,
    path: &Path,
    device: Option<u32>,
) -> Result<Recording> {
    answer::choose(recordings, &path.display().to_string(), device)
}

fn standard_input() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock();
    let refused =
        |error| Hinted::error(format!("cannot read standard input: {error}"), "name a file");
    input.by_ref().take(LONGEST_TEXT as u64 + 1).read_to_end(&mut bytes).map_err(refused)?;
    // Only what is no text may be longer.
    if LONGEST_TEXT < bytes.len() && !answer::is_text(&bytes) {
        input.read_to_end(&mut bytes).map_err(refused)?;
    }
    Ok(bytes)
}

/// Source files that a snapshot names, if they are here: they tell the classes of modules.
struct PythonFiles;

/// The longest source file that is read.
const LONGEST_SOURCE: u64 = 4 << 20;

impl infer::Sources for PythonFiles {
    /// A snapshot may name anything: only ordinary files of Python are opened.
    fn text(&self, file: &str) -> Option<String> {
        let path = Path::new(file);
        let about = path.extension().filter(|end| *end == "py").and(fs::metadata(path).ok())?;
        let is_fit = about.is_file() && about.len() <= LONGEST_SOURCE;
        is_fit.then(|| fs::read_to_string(path).ok()).flatten()
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let name = path.display();
    if path.is_dir() {
        return Err(Hinted::error(
            format!("`{name}` is a folder"),
            "name a file: a memory snapshot, a recording or a log",
        ));
    }
    fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Hinted::error(
            format!("`{name}` was not found"),
            "write a snapshot with `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")`",
        ),
        _ => Hinted::error(format!("cannot read `{name}`: {error}"), "check its permissions"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording of a device with this many events.
    fn of_device(device: u32, events: usize) -> Recording {
        let mut recording = Recording::default();
        recording.about.device = device;
        recording.events = recording::text::parse(&"oom 512\n".repeat(events)).unwrap();
        recording
    }

    #[test]
    fn both_kinds_of_files_are_told_by_their_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.fathom");
        let recording = of_device(0, 2);
        fs::write(&path, recording::file::write(&recording)).unwrap();
        assert_eq!(load(&path).unwrap()[0].events, recording.events);
        let snapshot = snapshot::from_recording(&recording, &[]);
        fs::write(&path, snapshot::write(&snapshot)).unwrap();
        assert_eq!(load(&path).unwrap()[0].events, recording.events);
        assert!(load(folder.path()).unwrap_err().to_string().ends_with("is a folder"));
    }

    #[test]
    fn texts_are_what_is_neither() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.log");
        let loaded = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            match load_any(&path) {
                Ok(Opened::Text(text)) => text,
                Ok(Opened::Recordings(_)) => "recordings".to_owned(),
                Err(error) => crate::error::text(&error),
            }
        };
        assert_eq!(loaded(b"CUDA out of memory."), "CUDA out of memory.");
        assert_eq!(loaded(b"cut in \xc3"), "cut in \u{fffd}");
        assert_eq!(loaded(b"\xff\xfeO\0O\0M\0"), "OOM");
        let recording = of_device(0, 2);
        assert_eq!(loaded(&recording::file::write(&recording)), "recordings");
        let snapshot = snapshot::from_recording(&recording, &[]);
        assert_eq!(loaded(&snapshot::write(&snapshot)), "recordings");
        assert!(loaded(b"\x80\x02").contains("hint"));
        assert!(loaded(&vec![b'a'; LONGEST_TEXT + 1]).contains("more than 64 MiB"));
    }
}
