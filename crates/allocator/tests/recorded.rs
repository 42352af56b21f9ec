//! Recordings of real cards are reproduced: each block's address, each segment event and its order,
//! and the final blocks. `tests/recorded/SOURCES.md` says where they come from.

use std::path::{Path, PathBuf};
use std::process::Command;

use allocator::{Settings, reproduce, validate};
use recording::Recording;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn check(name: &str, text: &str) {
    let recording: Recording = recording::text::recording(text).unwrap();
    let settings = Settings::of(&recording.about).unwrap();
    let result = reproduce(&recording, &settings);
    if let Some(difference) = result.difference {
        panic!("{name}: {difference}");
    }
    assert_eq!(result.timeline.moments.len(), recording.events.len());
    validate::validate(&recording, &result.timeline)
        .unwrap_or_else(|fault| panic!("{name}: {fault}"));
}

#[test]
fn recordings_of_the_repository() {
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("tests/recorded")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            check(&path.display().to_string(), &std::fs::read_to_string(&path).unwrap());
            seen += 1;
        }
    }
    assert!(3 <= seen, "tests/recorded/ holds recordings");
}

/// All snapshots of the shared collection, or of the folder that `FATHOM_SNAPSHOTS` names.
#[test]
fn snapshots_of_a_folder() {
    let collection = root().join("../shared/data/snapshots");
    let folder = std::env::var_os("FATHOM_SNAPSHOTS").map_or(collection, std::path::PathBuf::from);
    if !folder.is_dir() {
        eprintln!("SKIPPED: `{}` is no folder of memory snapshots", folder.display());
        return;
    }
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pickle" && extension != "pkl") {
            continue;
        }
        let script = root().join("tests/differential/convert.py");
        let output = Command::new("python3").arg(script).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        check(&path.display().to_string(), &String::from_utf8(output.stdout).unwrap());
        seen += 1;
    }
    eprintln!("{seen} snapshots are reproduced");
}
