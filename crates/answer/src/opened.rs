//! What the bytes of a file are: recordings, PyTorch's memory snapshots, JSON of ours, texts about memory.

// What is read here may come from anyone.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

use anyhow::Result;
use infer::Sources;
use recording::{BlockState, Recording};
use serde_json::Value;

use crate::Hinted;

/// What makes a snapshot hold events.
const RECORD_HISTORY: &str = "for a snapshot with events, call \
    `torch.cuda.memory._record_memory_history()` before the model is made";

/// The longest text that is read.
pub const LONGEST_TEXT: usize = 64 << 20;

/// What a file turned out to be.
pub enum Opened {
    /// One for each device with anything in it.
    Recordings(Vec<Recording>),
    /// Anything else that can be read.
    Text(String),
}

/// What a file is, its first bytes say. Its name is for errors; `sources` are files of Python that a snapshot
/// may name.
pub fn open(bytes: &[u8], name: &str, sources: &dyn Sources) -> Result<Opened> {
    if is_text(bytes) && !is_empty_snapshot(bytes, name) {
        text(bytes, name)
    } else {
        recordings(bytes, name, sources).map(Opened::Recordings)
    }
}

/// Of an empty file only its name says what it was to be.
fn is_empty_snapshot(bytes: &[u8], name: &str) -> bool {
    bytes.is_empty() && [".pickle", ".pkl", ".fathom"].iter().any(|end| name.ends_with(end))
}

/// The file as JSON; `None` if it is something else.
pub fn json(bytes: &[u8], name: &str) -> Result<Option<Value>> {
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Ok(None);
    }
    serde_json::from_slice(bytes).map(Some).map_err(|error| {
        Hinted::error(
            format!("`{name}` is not whole JSON: {error}"),
            "write it again with `--json`",
        )
    })
}

/// PowerShell writes the first form when output is redirected.
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// Neither a recording nor a pickle, and without the zeros that no text has. A pickle of protocol 0 has
/// no mark in front: it is one if it can be read as one.
pub fn is_text(bytes: &[u8]) -> bool {
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
fn text(bytes: &[u8], name: &str) -> Result<Opened> {
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
    Ok(Opened::Text(match () {
        () if bytes.starts_with(UTF_16[0]) => halves(u16::from_le_bytes),
        () if bytes.starts_with(UTF_16[1]) => halves(u16::from_be_bytes),
        () => String::from_utf8_lossy(bytes).into_owned(),
    }))
}

/// The recordings of a file, one for each device with anything in it.
pub fn recordings(bytes: &[u8], name: &str, sources: &dyn Sources) -> Result<Vec<Recording>> {
    if bytes.starts_with(recording::file::MAGIC) {
        let read = recording::file::read(bytes);
        return read.map(|recording| vec![recording]).map_err(|error| {
            Hinted::error(format!("`{name}`: {error}"), "record it again: `fathom run --out DIR`")
        });
    }
    let snapshot = snapshot::read(bytes)
        .map_err(|error| Hinted::error(format!("`{name}`: {error}"), error.hint()))?;
    let devices = snapshot::with_clues(&snapshot).into_iter();
    Ok(devices.map(|(recording, clues)| infer::infer(recording, &clues, sources)).collect())
}

/// The recordings of all devices that hold anything, or of the one that is asked for.
pub fn choose_all(
    recordings: Vec<Recording>,
    name: &str,
    device: Option<u32>,
) -> Result<Vec<Recording>> {
    let holds = |recording: &Recording| recording.trace_length() != 0 || held(recording).2 != 0;
    if device.is_some() || !recordings.iter().any(holds) {
        return Ok(vec![choose(recordings, name, device)?]);
    }
    Ok(recordings.into_iter().filter(holds).collect())
}

/// The recording of a device; without a number, of the one with most events, else with most memory. It
/// may be a state without a trace: see [`need_trace`].
pub fn choose(recordings: Vec<Recording>, name: &str, device: Option<u32>) -> Result<Recording> {
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
pub fn need_trace(recording: &Recording, name: &str) -> Result<()> {
    if recording.trace_length() != 0 {
        return Ok(());
    }
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
        let chosen = |device| choose(all(), "file", device);
        assert_eq!(chosen(None).unwrap().about.device, 1);
        assert_eq!(chosen(Some(0)).unwrap().about.device, 0);
        let error = |device| Hinted::words(&chosen(Some(device)).unwrap_err());
        assert!(error(5).0.contains("holds no events"), "{:?}", error(5));
        assert_eq!(error(2).1.as_deref(), Some("it holds devices 0, 1, 4, 5"));
    }
}
