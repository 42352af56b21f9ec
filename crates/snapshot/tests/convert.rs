//! Snapshots as recordings and back.

mod support;

use recording::{Event, Mark, Recording};
use snapshot::{Snapshot, from_recording, read, to_recordings, write};
use support::Value::{self, Dict, Int, List, Pair, Text};

fn converted(value: &Value) -> Vec<Recording> {
    to_recordings(&read(&value.pickle()).expect("a snapshot"))
}

/// The stack of an event as `function file:line`, innermost first, and its operator.
fn origin(recording: &Recording, event: &Event) -> (Vec<String>, String) {
    let Event::Alloc { owner, .. } = event else { panic!("`{event}` has no owner") };
    let owner = recording.owners[owner.0 as usize];
    let mut lines = Vec::new();
    let mut at = owner.stack;
    while let Some(id) = at {
        let stack = recording.stacks[id.0 as usize];
        let frame = recording.frames[stack.frame.0 as usize];
        let [function, file] = [frame.function, frame.file].map(|id| recording.texts.get(id));
        lines.push(format!("{function} {file}:{}", frame.line));
        at = stack.caller;
    }
    (lines, recording.texts.get(owner.operator).to_owned())
}

fn frames(names: &[&'static str]) -> Value {
    let frame = |name: &&'static str| {
        Dict(vec![("name", Text(name)), ("filename", Text("a.py")), ("line", Int(3))])
    };
    List(names.iter().map(frame).collect())
}

fn event(action: &'static str, address: u32, more: &[(&'static str, Value)]) -> Value {
    let mut pairs = vec![("action", Text(action)), ("size", Int(512)), ("stream", Int(0))];
    pairs.push(if action == "oom" { ("device_free", Int(77)) } else { ("addr", Int(address)) });
    pairs.extend_from_slice(more);
    Dict(pairs)
}

fn segment(address: u32, more: &[(&'static str, Value)]) -> Value {
    let block = Dict(vec![("size", Int(2_097_152)), ("state", Text("inactive"))]);
    let mut pairs = vec![
        ("device", Int(0)),
        ("address", Int(address)),
        ("total_size", Int(2_097_152)),
        ("stream", Int(0)),
        ("segment_type", Text("small")),
        ("blocks", List(vec![block])),
    ];
    pairs.extend_from_slice(more);
    Dict(pairs)
}

fn snapshot(
    segments: Vec<Value>,
    traces: Vec<Vec<Value>>,
    more: &[(&'static str, Value)],
) -> Value {
    let traces = traces.into_iter().map(List).collect();
    let mut pairs = vec![("segments", List(segments)), ("device_traces", List(traces))];
    pairs.extend_from_slice(more);
    Dict(pairs)
}

#[test]
fn owners_share_the_outer_parts_of_their_stacks() {
    let trace = vec![
        event("alloc", 4096, &[("frames", frames(&["conv", "forward", "main"]))]),
        event("alloc", 8192, &[("frames", frames(&["relu", "forward", "main"]))]),
        event("alloc", 4096, &[("frames", frames(&["conv", "forward", "main"]))]),
        event("alloc", 4096, &[("frames", frames(&[]))]),
    ];
    let recordings = converted(&snapshot(vec![], vec![trace], &[]));
    let recording = &recordings[0];
    assert_eq!((recording.stacks.len(), recording.frames.len()), (4, 4));
    assert_eq!(recording.owners.len(), 3);
    let (lines, _) = origin(recording, &recording.events[1]);
    assert_eq!(lines, ["relu a.py:3", "forward a.py:3", "main a.py:3"]);
    assert_eq!(origin(recording, &recording.events[0]), origin(recording, &recording.events[2]));
    assert_eq!(origin(recording, &recording.events[3]).0, Vec::<String>::new());
}

#[test]
fn the_forward_pass_and_the_users_text_name_an_allocation() {
    let more = [
        ("frames", frames(&["backward"])),
        ("forward_frames", frames(&["model"])),
        ("user_metadata", Text("aten.mm")),
    ];
    let trace = vec![
        event("alloc", 4096, &more),
        event("annotate", 4096, &[("user_metadata", Text("kv cache"))]),
    ];
    let recordings = converted(&snapshot(vec![], vec![trace], &[]));
    let recording = &recordings[0];
    let expected = (vec!["model a.py:3".to_owned()], "aten.mm".to_owned());
    assert_eq!(origin(recording, &recording.events[0]), expected);
    let Event::Mark(Mark::Name { name, .. }) = recording.events[1] else { panic!("a name") };
    assert_eq!(recording.texts.get(name), "kv cache");
}

#[test]
fn only_devices_with_something_in_them_are_recorded() {
    let trace = vec![event("alloc", 4096, &[]), event("snapshot", 0, &[]), event("oom", 0, &[])];
    let value =
        snapshot(vec![segment(1 << 21, &[("device", Int(3))])], vec![vec![], trace, vec![]], &[]);
    let recordings = converted(&value);
    let devices: Vec<u32> = recordings.iter().map(|recording| recording.about.device).collect();
    assert_eq!(devices, [1, 3]);
    let texts: Vec<String> = recordings[0].events.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["alloc 0x1000 512 stream 0 owner 0", "oom 512 free 77 stream 0"]);
    assert_eq!(recordings[1].finish.len(), 1);
    assert!(converted(&snapshot(vec![], vec![], &[])).is_empty());
}

#[test]
fn a_plain_list_has_segments_and_no_events() {
    let recordings = converted(&List(vec![segment(1 << 21, &[])]));
    assert_eq!((recordings.len(), recordings[0].about.torch.as_str()), (1, "1.13"));
    let grown = [("segment_pool_id", Pair(0, 0)), ("is_expandable", Value::True)];
    let recordings = converted(&List(vec![segment(1 << 21, &grown)]));
    let about = &recordings[0].about;
    assert_eq!(
        (about.torch.as_str(), about.allocator_settings.as_str()),
        ("2.1", "expandable_segments:True")
    );
}

#[test]
fn pools_that_a_trace_does_not_name_follow_from_its_segments() {
    let (low, high) = (1 << 21, 1 << 22);
    let trace = vec![
        event("alloc", low, &[]),
        event("segment_alloc", low, &[]),
        event("alloc", low, &[]),
        event("alloc", high, &[]),
    ];
    let segments = vec![segment(low, &[("segment_pool_id", Pair(1, 0))]), segment(high, &[])];
    let recordings = converted(&snapshot(segments, vec![trace], &[]));
    let pools = recordings[0].events.iter().map(|event| match event {
        Event::Alloc { pool, .. } | Event::SegmentAlloc { pool, .. } => *pool,
        other => panic!("`{other}`"),
    });
    assert_eq!(pools.collect::<Vec<_>>(), [(0, 0), (1, 0), (1, 0), (0, 0)]);
}

#[test]
fn settings_without_a_text_are_put_together_from_their_fields() {
    let conf = |fields: &[(&'static str, Value)]| {
        let value = snapshot(
            vec![segment(1 << 21, &[])],
            vec![vec![]],
            &[
                ("allocator_settings", Dict(fields.to_vec())),
                ("external_annotations", List(vec![])),
            ],
        );
        converted(&value)[0].about.allocator_settings.clone()
    };
    let text = |text| ("PYTORCH_CUDA_ALLOC_CONF", Text(text));
    assert_eq!(conf(&[text("")]), "");
    assert_eq!(
        conf(&[text("max_split_size_mb:64"), ("max_split_size", Int(1 << 30))]),
        "max_split_size_mb:64"
    );
    assert_eq!(conf(&[text(""), ("max_split_size", Int(64 << 20))]), "max_split_size_mb:64");
    assert_eq!(
        conf(&[text("max_split_size_mb:64"), ("expandable_segments", Value::True)]),
        "max_split_size_mb:64,expandable_segments:True"
    );
    let table = |rows| ("roundup_power2_divisions", Dict(rows));
    assert_eq!(conf(&[table(vec![("1", Int(4)), ("2", Int(4))])]), "roundup_power2_divisions:4");
    assert_eq!(
        conf(&[table(vec![("1", Int(0)), ("2", Int(8))])]),
        "roundup_power2_divisions:[1:0,2:8]"
    );
}

/// The parts of a snapshot that a recording of it still has.
fn essence(recording: &Recording) -> (String, Vec<(Vec<String>, String)>) {
    let allocations = recording.events.iter().filter(|event| matches!(event, Event::Alloc { .. }));
    let origins = allocations.map(|event| origin(recording, event)).collect();
    let plain = Recording { owners: Vec::new(), ..recording.clone() };
    let text = recording::text::write(&plain);
    let without_owners: Vec<&str> =
        text.lines().map(|line| line.split(" owner ").next().unwrap_or(line)).collect();
    (without_owners.join("\n"), origins)
}

#[test]
fn a_recording_written_as_a_snapshot_is_the_same_recording() {
    for path in support::samples() {
        let snapshot: Snapshot = read(&std::fs::read(&path).expect("sample")).expect("snapshot");
        for recording in to_recordings(&snapshot) {
            let written = write(&from_recording(&recording, &recording.finish));
            let again = to_recordings(&read(&written).expect("written snapshot"));
            assert_eq!(again.len(), 1, "{}", path.display());
            assert_eq!(again[0].about, recording.about, "{}", path.display());
            assert!(essence(&again[0]) == essence(&recording), "{} changed", path.display());
        }
    }
}
