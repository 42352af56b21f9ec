//! A recording written as a memory snapshot of PyTorch.

use std::path::Path;

use anyhow::Result;
use recording::Segment;
use study::Source;

use crate::error::Hinted;
use crate::outputs;

/// Writes the snapshot; gives what the reader should know about it.
pub(crate) fn write(source: &Source, from: &Path, to: &Path) -> Result<Option<String>> {
    let is_same = |one: &Path, other: &Path| matches!((one.canonicalize(), other.canonicalize()), (Ok(a), Ok(b)) if a == b);
    let name = to.display();
    if is_same(from, to) {
        return Err(Hinted::error(
            format!("`--snapshot {name}` is the file that is explained"),
            "name another file: this one would be lost",
        ));
    }
    let known = source.finish().filter(|segments| adds_up(segments));
    let snapshot = snapshot::from_recording(&source.recording, known.unwrap_or_default());
    outputs::write(to, &snapshot::write(&snapshot))?;
    let lost = "what was there at the end is not known: the snapshot has events only";
    Ok(known.is_none().then(|| lost.to_owned()))
}

/// Can sizes be summed up? Those of a damaged file may be any numbers.
fn adds_up(segments: &[Segment]) -> bool {
    let blocks = || segments.iter().flat_map(|segment| &segment.blocks);
    has_sum(segments.iter().map(|segment| segment.size))
        && has_sum(blocks().map(|block| block.size))
        && has_sum(blocks().map(|block| block.requested))
}

fn has_sum(mut sizes: impl Iterator<Item = u64>) -> bool {
    sizes.try_fold(0u64, u64::checked_add).is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use recording::Recording;
    use study::{Context, Wants};

    use super::*;

    const PROGRAM: &str = "torch 2.15.0\nsegment_alloc 0x1000000 20971520\nalloc 0x1000000 4194304\n\
                           segment_alloc 0x3000000 33554432\nalloc 0x3000000 33554432\nfree_requested 0x3000000 33554432\nfree_completed 0x3000000 33554432";
    const HUGE: &str = "segment 0x1000 18446744073709551615 large stream 0\n\
                        block 0x1000 18446744073709551615 active_allocated requested 1";

    fn exported(recording: &Recording) -> (snapshot::Snapshot, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pickle");
        let note = write(&source(recording.clone()), Path::new("in.fathom"), &path).unwrap();
        (snapshot::read(&fs::read(&path).unwrap()).unwrap(), note)
    }

    fn source(recording: Recording) -> Source {
        let wants = Wants { source: true, ..Wants::default() };
        let context = Context { wants, ..Context::default() };
        study::study(recording, &context).unwrap().source.unwrap()
    }

    #[test]
    fn segments_come_from_the_end_or_from_the_replay() {
        let recording = recording::text::recording(PROGRAM).unwrap();
        let (snapshot, note) = exported(&recording);
        let bytes =
            |of: fn(&snapshot::Segment) -> u64| snapshot.segments.iter().map(of).sum::<u64>();
        assert_eq!(bytes(|segment| segment.total_size), 52 << 20);
        assert_eq!(bytes(|segment| segment.allocated_size), 4 << 20);
        assert_eq!(note, None);
        let again = &snapshot::to_recordings(&snapshot)[0];
        assert_eq!(again.events, recording.events);
        assert_eq!(exported(again).0.segments.len(), snapshot.segments.len());
    }

    #[test]
    fn an_end_that_cannot_be_is_left_out() {
        let recording = recording::text::recording(&format!("{PROGRAM}\n{HUGE}\n{HUGE}")).unwrap();
        let (snapshot, note) = exported(&recording);
        assert!(snapshot.segments.is_empty() && note.unwrap().contains("events only"));
        assert_eq!(snapshot.device_traces[0].len(), recording.events.len());
    }

    #[test]
    fn a_recording_cannot_be_overwritten_by_its_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.fathom");
        fs::write(&path, "a recording").unwrap();
        let error = write(&source(Recording::default()), &path, &path).unwrap_err();
        assert!(error.to_string().ends_with("is the file that is explained"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "a recording");
    }
}
