//! Files that are damaged, cut, newer or written by somebody who knows less: everything that can be read is kept,
//! and what cannot is said with the file's name.

use contract::files::{File, Flops, Levers, Process, Read, Waits, read};

const NAME: &str = "process.7.json";

/// As Python writes it.
const WHOLE: &str = r#"{"schema": "fathom.process/1", "pid": 7, "python": "3.12.1", "torch": "2.9.0", "cuda": "12.8",
"cudnn": 91000, "architectures": ["sm_80"], "steps": 3, "steps_of_all": 3, "backward_passes": 3, "step_milliseconds": 40, "devices": [{"device": 0,
"allocated": {"bytes": 5, "phase": "backward", "step": 2}, "reserved": null, "requested": null, "total_bytes": 9, "flushes": 0}],
"refusals": [{"device": 0, "tried_bytes": 1, "free_bytes": 2, "phase": "forward", "step": 1, "steps_done": 0,
"file": "train.py", "line": 3}], "refusal_count": 1, "decisions": [], "generations": [], "faults": [], "loaders": [], "unreached": [], "refused": [],
"end": {"kind": "out_of_memory", "message": "no room", "type": null, "file": "train.py", "line": 3}}"#;

fn read_process(text: &str) -> Read<Process> {
    read(NAME, text.as_bytes())
}

fn whole() -> Process {
    let Read { value, is_whole, notes } = read_process(WHOLE);
    assert!(is_whole && notes.is_empty(), "{notes:?}");
    value.unwrap()
}

/// The file with one text in the place of another, which must be there.
fn changed(from: &str, to: &str) -> Read<Process> {
    assert!(WHOLE.contains(from));
    read_process(&WHOLE.replace(from, to))
}

/// The one note.
fn note<T>(read: &Read<T>) -> &str {
    assert_eq!(read.notes.len(), 1, "{:?}", read.notes);
    &read.notes[0]
}

#[test]
fn a_whole_file_has_no_notes() {
    let process = whole();
    assert_eq!(process.devices[0].allocated.as_ref().unwrap().bytes, 5);
    assert_eq!(process.devices[0].reserved, None);
    assert_eq!(process.end.unwrap().kind, "out_of_memory");
}

#[test]
fn half_a_character_costs_that_character_alone() {
    let read = changed("no room", r"no room in caf\udce9.py");
    assert!(read.is_whole && note(&read).contains(NAME) && note(&read).contains("one place"));
    let mut process = read.value.unwrap();
    let end = process.end.as_mut().unwrap();
    assert_eq!(end.message.as_deref(), Some("no room in caf\u{fffd}.py"));
    end.message = Some("no room".to_owned());
    assert_eq!(process, whole());
}

#[test]
fn a_file_that_is_cut_anywhere_says_so() {
    for length in 0..WHOLE.len() {
        let read = read_process(&WHOLE[..length]);
        assert!(read.value.is_none() && !read.is_whole, "{length}");
        assert!(note(&read).contains("`process.7.json` cannot be read"), "{}", note(&read));
        assert!(note(&read).contains(Process::TELLS));
    }
}

#[test]
fn a_newer_file_is_read_as_far_as_it_is_understood() {
    let newer =
        WHOLE.replace("process/1", "process/2").replace("\"pid\": 7", "\"pid\": 7, \"nice\": {}");
    let read = read_process(&newer);
    assert_eq!(read.value, Some(whole()));
    let said = ["`process.7.json`", "`fathom.process/2`", "newer", "`fathom.process/1`"];
    assert!(said.iter().all(|word| note(&read).contains(word)), "{}", note(&read));
}

#[test]
fn another_file_or_none_is_said_too() {
    assert!(note(&changed("fathom.process/1", "fathom.levers/1")).contains("`fathom.levers/1`"));
    let read = changed("\"schema\": \"fathom.process/1\", ", "");
    assert!(note(&read).contains("does not say its version") && read.value == Some(whole()));
    assert!(note(&read_process("[1]")).contains("cannot be read"));
}

#[test]
fn a_field_that_is_something_else_is_named_and_costs_no_other() {
    let read = changed("\"total_bytes\": 9", "\"total_bytes\": \"9\"");
    assert!(note(&read).contains("`devices[0].total_bytes` is no whole number"), "{}", note(&read));
    let mut process = read.value.unwrap();
    assert_eq!(std::mem::replace(&mut process.devices[0].total_bytes, 9), 0);
    assert!(!read.is_whole && process == whole());
    assert!(note(&changed("\"steps\": 3, ", "")).contains("`steps` is missing"));
    assert!(note(&changed("\"line\": 3}]", "\"line\": -3}]")).contains("`refusals[0].line`"));
    let many = changed("\"pid\": 7, \"python\": \"3.12.1\", \"torch\": \"2.9.0\",", "");
    assert!(note(&many).contains("`pid` is missing, `python` is missing, `torch` is missing"));
    let row = changed("\"devices\": [", "\"devices\": [1, {\"device\": 4}, ");
    assert!(note(&row).contains("`devices[0]` is no dictionary"), "{}", note(&row));
    assert_eq!(row.value.unwrap().devices.len(), 2);
}

#[test]
fn the_other_files_are_read_in_the_same_way() {
    let flops = r#"{"schema": "fathom.flops/1", "flops": {"a": 7, "b": "x"}, "changing": []}"#;
    let read: Read<Flops> = read("flops.7.json", flops.as_bytes());
    assert!(note(&read).contains("`flops.b` is no whole number"));
    assert_eq!(read.value.unwrap().flops.into_iter().collect::<Vec<_>>(), [("a".to_owned(), 7)]);
    let read: Read<Levers> = contract::files::read("levers.7.json", b"[]");
    assert!(note(&read).contains("`levers.7.json`") && note(&read).contains(Levers::TELLS));
    let waits = r#"{"schema": "fathom.waits/1", "rank": 4294967296, "sender": 1, "letter": "1/a", "call": "recv"}"#;
    let read: Read<Waits> = contract::files::read("waits.7.json", waits.as_bytes());
    assert!(!read.is_whole && note(&read).contains("`rank`"));
}
