//! A recording survives both forms, and a damaged file is refused, never believed.

mod support;

use proptest::prelude::*;
use recording::file::{Error, MAGIC, read, write};
use recording::{Recording, text};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_file_holds_everything(recording in support::recordings()) {
        prop_assert_eq!(read(&write(&recording)).unwrap(), recording);
    }

    #[test]
    fn the_text_holds_everything(recording in support::recordings()) {
        prop_assert_eq!(text::recording(&text::write(&recording)).unwrap(), recording);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let header = header(1);
        drop(read(&bytes));
        drop(read(&[header, bytes].concat()));
    }

    #[test]
    fn any_payload_is_read_or_refused(
        tag in 0..TAGS.len(), bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let file = [header(1), chunk(b"PLAC", &[0; 16]), chunk(TAGS[tag], &bytes)].concat();
        drop(read(&file));
    }
}

const TAGS: [&[u8; 4]; 12] = [
    b"ABOU", b"TEXT", b"FRAM", b"SRCE", b"STAC", b"OWNR", b"MODU", b"PLAC", b"STRT", b"EVNT",
    b"FINI", b"DONE",
];

fn header(version: u32) -> Vec<u8> {
    [&MAGIC[..], &version.to_le_bytes()].concat()
}

fn chunk(tag: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    let crc = crc32fast::hash(&[tag, payload].concat());
    let length = payload.len() as u32;
    [&tag[..], &length.to_le_bytes(), &crc.to_le_bytes(), payload].concat()
}

/// A file with something of every kind.
fn small() -> Vec<u8> {
    let text = "\
torch 2.15.0
memory 25769803776
parameters total 9
complete
text 1 \"train.py\"
text 2 \"net\"
frame 0 file 1 function 2 line 12 source 2
stack 0 frame 0
stack 1 frame 0 caller 0
owner 0
owner 1 module 2 operator 1 stack 1
module 0 path 2 class 1
segment 0x100000 2097152 small stream 7 expandable
block 0x100000 2097152 inactive requested 0
start segment_alloc 0x100000 2097152 stream 7
alloc 0x100000 3 stream 7 owner 1
name 0x100000 weights text 2
phase forward step 1
";
    write(&text::recording(text).unwrap())
}

#[test]
fn every_prefix_is_a_killed_run() {
    let file = small();
    let whole = read(&file).unwrap();
    assert!(whole.about.complete);
    for length in 0..file.len() {
        match read(&file[..length]) {
            Err(error) => {
                assert!(length < 20 && error == Error::NotARecording, "{length}: {error}")
            }
            Ok(part) => {
                assert!(!part.about.complete, "{length}");
                assert!(whole.events.starts_with(&part.events));
                assert!(whole.owners.starts_with(&part.owners));
            }
        }
    }
}

#[test]
fn no_flipped_byte_is_believed() {
    let file = small();
    let whole = read(&file).unwrap();
    for index in 0..file.len() {
        for bit in 0..8 {
            let mut damaged = file.clone();
            damaged[index] ^= 1 << bit;
            // A length that was made larger looks like a file that ends too early.
            let is_seen = read(&damaged).map_or(true, |part| !part.about.complete);
            assert!(is_seen, "byte {index}, bit {bit}");
        }
    }
    assert_eq!(read(&file).unwrap(), whole);
}

#[test]
fn texts_written_twice_keep_their_numbers() {
    let same =
        [&1u32.to_le_bytes()[..], b"a", &1u32.to_le_bytes(), b"a", &1u32.to_le_bytes(), b"b"];
    let rows: Vec<u8> = [2u32, 3, 7].iter().flat_map(|number| number.to_le_bytes()).collect();
    let file = [header(1), chunk(b"TEXT", &same.concat()), chunk(b"FRAM", &rows)].concat();
    let recording = read(&file).unwrap();
    let frame = recording.frames[0];
    assert_eq!((recording.texts.get(frame.file), recording.texts.get(frame.function)), ("a", "b"));
    assert_eq!((recording.texts.len(), frame.line), (3, 7));
}

#[test]
fn facts_come_in_pieces_and_unknown_things_are_passed_over() {
    let file = [
        header(1),
        chunk(b"ABOU", br#"{"torch": "2.6.0", "memory_bytes": 5, "weather": "fine"}"#),
        chunk(b"NEWS", b"from a later Fathom"),
        chunk(b"ABOU", br#"{"memory_bytes": 6, "parameters": {"total": 3}, "counters": null}"#),
        chunk(b"DONE", b""),
    ];
    let Recording { about, .. } = read(&file.concat()).unwrap();
    assert_eq!((about.torch.as_str(), about.memory_bytes, about.complete), ("2.6.0", 6, true));
    assert_eq!((about.parameters.unwrap().total, about.counters), (3, None));
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let error = |tag: &[u8; 4], payload: &[u8]| {
        let file = [header(1), chunk(b"PLAC", &[0; 16]), chunk(tag, payload)].concat();
        read(&file).unwrap_err().to_string()
    };
    let row = |at: usize, value: u8| {
        let mut row = [0; 48];
        row[24 + at] = value;
        row
    };
    assert_eq!(error(b"EVNT", &row(0, 18)), "byte 84: chunk `EVNT`: 18 is no kind of event");
    assert_eq!(error(b"EVNT", &row(2, 1)), "byte 84: chunk `EVNT`: place 1 is not among 1");
    assert_eq!(error(b"EVNT", &row(4, 1)), "byte 84: chunk `EVNT`: owner 1 is not among 0");
    assert_eq!(error(b"EVNT", &[0; 25]), "byte 60: chunk `EVNT`: 25 bytes are no whole rows of 24");
    assert_eq!(error(b"STAC", &[0; 8]), "byte 60: chunk `STAC`: frame 0 is not among 0");
    assert_eq!(error(b"OWNR", &[1; 16]), "byte 60: chunk `OWNR`: text 16843009 is not among 1");
    assert_eq!(error(b"TEXT", &[9; 5]), "byte 60: chunk `TEXT`: the last text is not whole");
    assert!(error(b"TEXT", &[1, 0, 0, 0, 255]).contains("utf-8"));
    assert_eq!(error(b"FINI", &[1; 24]), "byte 60: chunk `FINI`: the last segment is not whole");
    assert!(
        error(b"ABOU", b"{\"device\": -1}").starts_with("byte 60: chunk `ABOU`: invalid value")
    );
    let mut damaged = [header(1), chunk(b"PLAC", &[0; 16])].concat();
    damaged[40] ^= 1;
    assert_eq!(
        read(&damaged).unwrap_err().to_string(),
        "byte 20: chunk `PLAC` is damaged, its checksum is not that of its bytes"
    );
}

#[test]
fn other_files_and_newer_versions_are_refused() {
    assert_eq!(read(b"").unwrap_err(), Error::NotARecording);
    assert_eq!(read(b"\x80\x04pickle, or anything else").unwrap_err(), Error::NotARecording);
    assert_eq!(read(&header(2)).unwrap_err(), Error::NewerVersion { found: 2 });
    assert!(!read(&header(1)).unwrap().about.complete);
}
