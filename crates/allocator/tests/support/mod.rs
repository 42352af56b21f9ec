//! Memory snapshots of real cards, for tests.

use std::path::{Path, PathBuf};

use recording::Recording;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One device of a snapshot, and where it comes from.
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) recording: Recording,
}

/// Those of the repository; `tests/recorded/SOURCES.md` says where they come from.
pub(crate) fn of_repository() -> Vec<Recorded> {
    let all = of_folder(&root().join("tests/recorded"));
    assert!(3 <= all.len(), "tests/recorded/ holds snapshots");
    all
}

/// Those of the shared collection, or of the folder that `FATHOM_SNAPSHOTS` names; none where it is absent.
pub(crate) fn of_collection() -> Vec<Recorded> {
    let collection = root().join("../shared/data/snapshots");
    let folder = std::env::var_os("FATHOM_SNAPSHOTS").map_or(collection, PathBuf::from);
    if !folder.is_dir() {
        eprintln!("SKIPPED: `{}` is no folder of memory snapshots", folder.display());
        return Vec::new();
    }
    of_folder(&folder)
}

/// Every device of every snapshot in a folder.
fn of_folder(folder: &Path) -> Vec<Recorded> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "pickle" || end == "pkl"));
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        let snapshot =
            snapshot::read(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let recordings = snapshot::to_recordings(&snapshot);
        assert!(!recordings.is_empty(), "{} holds something", path.display());
        for recording in recordings {
            let name = format!("{}, device {}", path.display(), recording.about.device);
            all.push(Recorded { name, recording });
        }
    }
    all
}
