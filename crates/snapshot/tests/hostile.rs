//! Whatever the bytes, reading ends, does not panic, and stays in memory proportional to them.

mod support;

use proptest::prelude::*;
use snapshot::{Error, pickle};
use support::Value;

/// Reads bytes as pickle and as snapshot; counts what was made.
#[track_caller]
fn survive(bytes: &[u8]) {
    if let Ok(arena) = pickle::load(bytes) {
        assert!(arena.node_count() <= 260 + bytes.len(), "{} nodes", arena.node_count());
        assert!(arena.child_count() <= bytes.len(), "{} children", arena.child_count());
    }
    match snapshot::read(bytes) {
        Ok(snapshot) => {
            let blocks: usize = snapshot.segments.iter().map(|segment| segment.blocks.len()).sum();
            let entries = snapshot.event_count() + snapshot.segments.len() + blocks;
            assert!(entries <= 260 + bytes.len(), "{entries} entries");
            assert!(snapshot.tables.strings.len() <= 260 + bytes.len());
            snapshot::write(&snapshot);
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
    }
}

fn sample() -> Vec<u8> {
    let path = support::recorded().join("shreyansh26-model_memory_usage_profile_grad.pkl");
    std::fs::read(path).expect("the recorded sample")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        survive(&bytes);
    }

    /// Bytes drawn from instructions that nest, share and fill get further than random ones.
    #[test]
    fn random_instructions(bytes in prop::collection::vec(
        prop::sample::select(&b"]}()NK\x01h\x00\x94aeust012.\x85\x86\x87\x8f\x90\x91ldq\x02r\x8c\x01"[..]), 0..400)) {
        survive(&bytes);
    }

    #[test]
    fn mutated_samples(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..6)) {
        let mut bytes = sample();
        for (place, byte, kind) in changes {
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        survive(&bytes);
    }
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = sample();
    for len in 0..bytes.len() {
        assert!(snapshot::read(&bytes[..len]).is_err(), "the first {len} bytes");
    }
    let cut = snapshot::read(&bytes[..9000]).unwrap_err();
    assert!(cut.hint().starts_with("the file is cut off"), "{cut}");
}

#[test]
fn laughs_by_the_billion_stay_small() {
    // Each list holds the one before it ten times.
    let mut bytes = b"](NNNNNNNNNNe\x94".to_vec();
    for level in 0..40 {
        bytes.extend(b"](");
        bytes.extend([b'h', level].repeat(10));
        bytes.extend(b"e\x94");
    }
    bytes.extend(b"(e.");
    survive(&bytes);
}

#[test]
fn a_list_within_itself_is_no_snapshot() {
    assert!(matches!(snapshot::read(b"]\x94(h\x00h\x00e."), Err(Error::NotSnapshot { .. })));
}

#[test]
fn the_same_trace_for_a_thousand_devices_is_refused() {
    let event = Value::Dict(vec![
        ("action", Value::Text("alloc")),
        ("addr", Value::Int(1)),
        ("size", Value::Int(1)),
    ]);
    let trace = Value::List(vec![event; 100]).pickle();
    // `{"device_traces": [trace] * 1000}`, the trace from the memo.
    let mut bytes = b"}(\x8c\x0ddevice_traces](".to_vec();
    bytes.extend(&trace[..trace.len() - 1]);
    bytes.push(0x94);
    bytes.extend([b'h', 0].repeat(999));
    bytes.extend(b"eu.");
    assert_eq!(snapshot::read(&bytes), Err(Error::Amplified));
}

#[test]
fn a_stack_that_grows_with_each_event_stays_small() {
    // Memo 0 is a frame, 1 the list, 2 and on the words of an event.
    let mut bytes = b"}(\x8c\x0ddevice_traces](](".to_vec();
    bytes.extend(b"}\x940]\x940");
    for word in ["action", "alloc", "addr", "size", "stream", "frames"] {
        bytes.extend([0x8c, word.len() as u8]);
        bytes.extend(word.as_bytes());
        bytes.extend([0x94, b'0']);
    }
    for _ in 0..3000 {
        // The list, one frame more; then an event.
        bytes.extend(b"h\x01h\x00a0}(h\x02h\x03h\x04K\x01h\x05K\x01h\x06K\x00h\x07h\x01u");
    }
    bytes.extend(b"eeu.");
    survive(&bytes);
    let snapshot = snapshot::read(&bytes).expect("sound values");
    let tables = &snapshot.tables;
    let stacks = (0..tables.stack_count()).map(snapshot::StackId::new);
    let n_frames: usize = stacks.map(|id| tables.stack(id).len()).sum();
    assert!(n_frames <= bytes.len(), "{n_frames} frames");
}

#[test]
fn great_lengths_are_refused_without_being_reserved() {
    for bytes in [
        &b"X\xff\xff\xff\x7f"[..],
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x8b\xff\xff\xff\x7f",
        b"Nr\xff\xff\xff\xff.",
        b"\x95\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        survive(bytes);
        assert!(pickle::load(bytes).is_err());
    }
}

#[test]
fn what_people_pass_instead_is_named() {
    for (bytes, expected) in [
        (&b""[..], "an empty file"),
        (b"PK\x03\x04....", "a zip archive"),
        (b"\x1f\x8b\x08", "a gzip stream"),
        (b"<!DOCTYPE html>", "an HTML page"),
        (b"{\"segments\": []}", "JSON"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"\x80\x04K\x07.", "the pickle holds a value of type `int`"),
        (b"\x80\x04](K\x07e.", "the pickle holds a list whose first item is a value of type `int`"),
        (b"\x80\x04}\x8c\x05epochK\x07s.", "the pickle holds a dict with the keys `epoch`, …"),
    ] {
        let error = snapshot::read(bytes).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.to_string().starts_with("not a memory snapshot"), "{error}");
    }
}
