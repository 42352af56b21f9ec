//! Files that hold recordings: Fathom's own, and PyTorch's memory snapshots.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Result;
use recording::Recording;

use crate::error::Hinted;

/// What makes a snapshot hold events.
const RECORD_HISTORY: &str = "for a snapshot with events, call \
    `torch.cuda.memory._record_memory_history()` before the model is made";

/// The recordings of a file, one for each device with anything in it; what it is, its first bytes say.
pub(crate) fn load(path: &Path) -> Result<Vec<Recording>> {
    let bytes = read(path)?;
    let name = path.display();
    if bytes.starts_with(recording::file::MAGIC) {
        let read = recording::file::read(&bytes);
        return read.map(|recording| vec![recording]).map_err(|error| {
            Hinted::error(format!("`{name}`: {error}"), "record it again: `fathom run --out DIR`")
        });
    }
    let snapshot = snapshot::read(&bytes)
        .map_err(|error| Hinted::error(format!("`{name}`: {error}"), error.hint()))?;
    Ok(snapshot::to_recordings(&snapshot))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let name = path.display();
    if path.is_dir() {
        return Err(Hinted::error(
            format!("`{name}` is a folder"),
            "name a file: a memory snapshot or a recording",
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

/// The recording of a device; without a number, of the one with most events.
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
        None => recordings.into_iter().rev().max_by_key(|recording| recording.events.len()),
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
    if recording.events.is_empty() {
        return Err(Hinted::error(
            format!("`{name}` holds no events: history was not enabled, or was cleared"),
            RECORD_HISTORY,
        ));
    }
    Ok(recording)
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
}
