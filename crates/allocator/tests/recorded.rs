//! Recordings of real cards are reproduced: each block's address, each segment event and its order,
//! and the final blocks. `tests/recorded/SOURCES.md` says where they come from.

use std::path::{Path, PathBuf};

use allocator::{Settings, reproduce, validate};
use recording::Recording;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn check(name: &str, recording: &Recording) {
    let settings = Settings::of(&recording.about).unwrap();
    let result = reproduce(recording, &settings);
    if let Some(difference) = result.difference {
        panic!("{name}: {difference}");
    }
    assert_eq!(result.timeline.moments.len(), recording.events.len());
    validate::validate(recording, &result.timeline)
        .unwrap_or_else(|fault| panic!("{name}: {fault}"));
}

/// Every device of every snapshot in a folder; gives the number of snapshots.
fn check_folder(folder: &Path) -> usize {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pickle" && extension != "pkl") {
            continue;
        }
        let snapshot = snapshot::read(&std::fs::read(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let recordings = snapshot::to_recordings(&snapshot);
        assert!(!recordings.is_empty(), "{} holds something", path.display());
        for recording in recordings {
            check(&format!("{}, device {}", path.display(), recording.about.device), &recording);
        }
        seen += 1;
    }
    seen
}

#[test]
fn snapshots_of_the_repository() {
    let seen = check_folder(&root().join("tests/recorded"));
    assert!(3 <= seen, "tests/recorded/ holds snapshots");
}

/// All snapshots of the shared collection, or of the folder that `FATHOM_SNAPSHOTS` names.
#[test]
fn snapshots_of_a_folder() {
    let collection = root().join("../shared/data/snapshots");
    let folder = std::env::var_os("FATHOM_SNAPSHOTS").map_or(collection, PathBuf::from);
    if !folder.is_dir() {
        eprintln!("SKIPPED: `{}` is no folder of memory snapshots", folder.display());
        return;
    }
    eprintln!("{} snapshots are reproduced", check_folder(&folder));
}
