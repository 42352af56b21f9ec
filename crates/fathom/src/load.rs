//! Files that hold recordings: Fathom's own, and PyTorch's memory snapshots; and texts about memory.

// What is read here may come from anyone.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use anyhow::Result;
use recording::{BlockState, Recording};

use crate::error::Hinted;

/// What makes a snapshot hold events.
const RECORD_HISTORY: &str = "for a snapshot with events, call \
    `torch.cuda.memory._record_memory_history()` before the model is made";

/// The longest text that is read.
const LONGEST_TEXT: usize = 64 << 20;

/// What a file turned out to be.
pub(crate) enum Loaded {
    /// One for each device with anything in it.
    Recordings(Vec<Recording>),
    /// Anything else that can be read.
    Text(String),
}

/// Reads a file, or standard input if it is named `-`; what it is, its first bytes say.
pub(crate) fn load_any(path: &Path) -> Result<Loaded> {
    let bytes = if path == Path::new("-") { standard_input()? } else { read(path)? };
    if is_text(&bytes) {
        text(&bytes, path)
    } else {
        recordings(&bytes, path).map(Loaded::Recordings)
    }
}

/// The recordings of a file, one for each device with anything in it.
pub(crate) fn load(path: &Path) -> Result<Vec<Recording>> {
    recordings(&read(path)?, path)
}

fn standard_input() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock();
    let refused =
        |error| Hinted::error(format!("cannot read standard input: {error}"), "name a file");
    input.by_ref().take(LONGEST_TEXT as u64 + 1).read_to_end(&mut bytes).map_err(refused)?;
    // Only what is no text may be longer.
    if LONGEST_TEXT < bytes.len() && !is_text(&bytes) {
        input.read_to_end(&mut bytes).map_err(refused)?;
    }
    Ok(bytes)
}

/// PowerShell writes the first form when output is redirected.
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// Neither a recording nor a pickle, and without the zeros that no text has. A pickle of protocol 0 has
/// no mark in front: it is one if it can be read as one.
fn is_text(bytes: &[u8]) -> bool {
    if bytes.starts_with(recording::file::MAGIC) || bytes.starts_with(b"\x80") {
        return false;
    }
    let mut begin = bytes.iter().take(64 << 10);
    let looks_so =
        UTF_16.iter().any(|mark| bytes.starts_with(mark)) || begin.all(|byte| *byte != 0);
    let may_be_pickle = bytes.trim_ascii_end().ends_with(b".") && bytes.contains(&b'(');
    looks_so && !(may_be_pickle && snapshot::read(bytes).is_ok())
}

/// Bytes that are no UTF-8 are replaced: a log may be cut anywhere.
fn text(bytes: &[u8], path: &Path) -> Result<Loaded> {
    let name = path.display();
    if LONGEST_TEXT < bytes.len() {
        return Err(Hinted::error(
            format!("`{name}` is a text of more than {} MiB", LONGEST_TEXT >> 20),
            format!("the message is near the end: `tail -c 64M {name} | fathom explain -`"),
        ));
    }
    let halves = |from: fn([u8; 2]) -> u16| -> String {
        let (pairs, _) = bytes.as_chunks();
        let pairs = pairs.iter().skip(1).map(|pair| from(*pair));
        char::decode_utf16(pairs).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    Ok(Loaded::Text(match () {
        () if bytes.starts_with(UTF_16[0]) => halves(u16::from_le_bytes),
        () if bytes.starts_with(UTF_16[1]) => halves(u16::from_be_bytes),
        () => String::from_utf8_lossy(bytes).into_owned(),
    }))
}

fn recordings(bytes: &[u8], path: &Path) -> Result<Vec<Recording>> {
    let name = path.display();
    if bytes.starts_with(recording::file::MAGIC) {
        let read = recording::file::read(bytes);
        return read.map(|recording| vec![recording]).map_err(|error| {
            Hinted::error(format!("`{name}`: {error}"), "record it again: `fathom run --out DIR`")
        });
    }
    let snapshot = snapshot::read(bytes)
        .map_err(|error| Hinted::error(format!("`{name}`: {error}"), error.hint()))?;
    let devices = snapshot::with_clues(&snapshot).into_iter();
    Ok(devices.map(|(recording, clues)| infer::infer(recording, &clues, &PythonFiles)).collect())
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

/// The recordings of all devices that hold anything, or of the one that is asked for.
pub(crate) fn choose_all(
    recordings: Vec<Recording>,
    path: &Path,
    device: Option<u32>,
) -> Result<Vec<Recording>> {
    let holds = |recording: &Recording| recording.trace_length() != 0 || held(recording).2 != 0;
    if device.is_some() || !recordings.iter().any(holds) {
        return Ok(vec![choose(recordings, path, device)?]);
    }
    Ok(recordings.into_iter().filter(holds).collect())
}

/// The recording of a device; without a number, of the one with most events, else with most memory. It
/// may be a state without a trace: see [`need_trace`].
pub(crate) fn choose(
    recordings: Vec<Recording>,
    path: &Path,
    device: Option<u32>,
) -> Result<Recording> {
    let numbers: Vec<String> =
        recordings.iter().map(|recording| recording.about.device.to_string()).collect();
    let found = match device {
        Some(device) => recordings.into_iter().find(|recording| recording.about.device == device),
        // Of two with as many, the first.
        None => recordings
            .into_iter()
            .rev()
            .max_by_key(|recording| (recording.trace_length(), held(recording).1)),
    };
    let name = path.display();
    let recording = found.ok_or_else(|| match (device, numbers.is_empty()) {
        (Some(device), false) => Hinted::error(
            format!("`{name}` holds nothing of device {device}"),
            format!("it holds {}", devices(&numbers)),
        ),
        _ => Hinted::error(
            format!("`{name}` is empty: no memory was in use and none was recorded"),
            RECORD_HISTORY,
        ),
    })?;
    if recording.trace_length() == 0 && held(&recording).2 == 0 {
        return Err(Hinted::error(
            format!("`{name}` holds no events: history was not enabled, or was cleared"),
            RECORD_HISTORY,
        ));
    }
    Ok(recording)
}

/// Refuses a state without a trace: there is nothing to replay.
pub(crate) fn need_trace(recording: &Recording, path: &Path) -> Result<()> {
    if recording.trace_length() != 0 {
        return Ok(());
    }
    let name = path.display();
    let (blocks, used, reserved) = held(recording);
    let size = report::bytes::text;
    Err(Hinted::error(
        format!(
            "`{name}` is a snapshot of a state without a trace: {blocks} blocks in use ({} of {} \
             reserved) and no events to replay",
            size(used),
            size(reserved)
        ),
        format!("`fathom explain {name}` says who holds this memory; {RECORD_HISTORY}"),
    ))
}

/// Blocks in use at the end, their bytes, and the bytes of all segments. A file may say any numbers.
fn held(recording: &Recording) -> (usize, u64, u64) {
    let blocks = recording.finish.iter().flat_map(|segment| &segment.blocks);
    let used = blocks.filter(|block| block.state != BlockState::Inactive);
    let (count, bytes) =
        used.fold((0, 0u64), |(count, bytes), block| (count + 1, bytes.saturating_add(block.size)));
    let segments = recording.finish.iter();
    let reserved = segments.fold(0u64, |sum, segment| sum.saturating_add(segment.size));
    (count, bytes, reserved)
}

fn devices(numbers: &[String]) -> String {
    match numbers {
        [one] => format!("device {one} only"),
        all => format!("devices {}", all.join(", ")),
    }
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
    fn the_busiest_device_is_chosen_unless_one_is_named() {
        let all = || vec![of_device(0, 1), of_device(1, 3), of_device(4, 3), of_device(5, 0)];
        let chosen = |device| choose(all(), Path::new("file"), device);
        assert_eq!(chosen(None).unwrap().about.device, 1);
        assert_eq!(chosen(Some(0)).unwrap().about.device, 0);
        let error = |device| crate::error::text(&chosen(Some(device)).unwrap_err());
        assert!(error(5).contains("holds no events"), "{}", error(5));
        assert!(error(2).contains("it holds devices 0, 1, 4, 5"), "{}", error(2));
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
                Ok(Loaded::Text(text)) => text,
                Ok(Loaded::Recordings(_)) => "recordings".to_owned(),
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
