//! The forms of a snapshot from torch 1.13 on, each in a few lines.

mod support;

use snapshot::{Action, BlockState, Contents, Error, Form, PoolId, Snapshot};
use support::Value::{self, Dict, Int, List, Pair, Text};

fn read(value: &Value) -> Snapshot {
    snapshot::read(&value.pickle()).expect("a snapshot")
}

fn frames(name: &'static str) -> Value {
    List(vec![Dict(vec![("name", Text(name)), ("filename", Text("a.py")), ("line", Int(3))])])
}

fn segment(blocks: Vec<Value>, more: &[(&'static str, Value)]) -> Value {
    let mut pairs = vec![
        ("device", Int(0)),
        ("address", Int(4096)),
        ("total_size", Int(3072)),
        ("stream", Int(0)),
        ("segment_type", Text("small")),
        ("blocks", List(blocks)),
    ];
    pairs.extend_from_slice(more);
    Dict(pairs)
}

fn old_blocks() -> Vec<Value> {
    let history =
        Dict(vec![("addr", Int(4096)), ("real_size", Int(1000)), ("frames", frames("f"))]);
    let older = Dict(vec![("addr", Int(4096)), ("real_size", Int(9)), ("frames", frames("g"))]);
    vec![
        Dict(vec![
            ("size", Int(1024)),
            ("state", Text("inactive")),
            ("history", List(vec![older.clone()])),
        ]),
        Dict(vec![
            ("size", Int(2048)),
            ("state", Text("active_allocated")),
            ("history", List(vec![history, older])),
        ]),
    ]
}

fn event(action: &'static str, more: &[(&'static str, Value)]) -> Value {
    let mut pairs = vec![("action", Text(action)), ("size", Int(512)), ("stream", Int(0))];
    if action != "oom" {
        pairs.push(("addr", Int(4096)));
    }
    pairs.extend_from_slice(more);
    Dict(pairs)
}

fn traced(events: Vec<Value>, more: &[(&'static str, Value)]) -> Value {
    let mut pairs = vec![("segments", List(vec![])), ("device_traces", List(vec![List(events)]))];
    pairs.extend_from_slice(more);
    Dict(pairs)
}

#[test]
fn a_list_of_segments() {
    let snapshot = read(&List(vec![segment(old_blocks(), &[])]));
    assert_eq!((snapshot.form, snapshot.contents()), (Form::List, Contents::NoHistory));
    let blocks = &snapshot.segments[0].blocks;
    assert_eq!((blocks[0].address, blocks[1].address), (4096, 5120), "running sums");
    assert_eq!((blocks[0].state, blocks[0].stack), (BlockState::Inactive, None));
    assert_eq!(blocks[1].requested_size, Some(1000));
    let stack = snapshot.tables.stack(blocks[1].stack.expect("frames of the newest"));
    let frame = snapshot.tables.frame(stack[0]).expect("a frame");
    assert_eq!((snapshot.tables.string(frame.name), frame.line), ("f", 3));
    assert_eq!(snapshot::read(b"\x80\x02].").map(|empty| empty.contents()), Ok(Contents::Nothing));
}

#[test]
fn the_newest_key_tells_the_version() {
    let plain = || event("alloc", &[]);
    let timed = |more: &[(&'static str, Value)]| {
        let mut keys = vec![("time_us", Int(7))];
        keys.extend_from_slice(more);
        event("alloc", &keys)
    };
    let settings = |keys: &[(&'static str, Value)]| ("allocator_settings", Dict(keys.to_vec()));
    let annotations = || ("external_annotations", List(vec![]));
    let context = ("compile_context", Text("N/A"));
    let metadata = ("user_metadata", Text(""));
    let reuse = ("graph_capture_record_stream_reuse", Int(0));
    let two_zero = Dict(vec![
        ("segments", List(vec![segment(old_blocks(), &[("requested_size", Int(1000))])])),
        ("device_traces", List(vec![List(vec![plain()])])),
    ]);
    let new_block =
        Dict(vec![("address", Int(4096)), ("size", Int(3072)), ("state", Text("inactive"))]);
    let two_one = Dict(vec![
        ("segments", List(vec![segment(vec![new_block], &[("segment_pool_id", Pair(1, 2))])])),
        ("device_traces", List(vec![List(vec![plain()])])),
    ]);
    assert_eq!(read(&two_one).segments[0].pool, Some(PoolId(1, 2)));
    for (expected, value) in [
        (Form::V2_0, two_zero),
        (Form::V2_1, two_one),
        (Form::V2_2, traced(vec![timed(&[])], &[])),
        (Form::V2_3To2_4, traced(vec![timed(&[])], &[settings(&[])])),
        (Form::V2_5To2_7, traced(vec![timed(&[])], &[settings(&[]), annotations()])),
        (
            Form::V2_8,
            traced(vec![timed(std::slice::from_ref(&context))], &[settings(&[]), annotations()]),
        ),
        (
            Form::V2_9,
            traced(
                vec![timed(&[context])],
                &[settings(std::slice::from_ref(&reuse)), annotations()],
            ),
        ),
        (Form::V2_10To2_11, traced(vec![timed(&[metadata])], &[settings(&[reuse])])),
        (Form::V2_12, traced(vec![timed(&[("pool_id", Pair(0, 1))])], &[settings(&[])])),
        (Form::V2_13, traced(vec![], &[settings(&[("max_round_threshold", Int(1))])])),
        (
            Form::V2_14,
            traced(vec![], &[("host_segments", List(vec![])), ("host_traces", List(vec![]))]),
        ),
    ] {
        assert_eq!(read(&value).form, expected);
    }
}

#[test]
fn every_action() {
    let names = [
        ("alloc", Action::Alloc),
        ("free_requested", Action::FreeRequested),
        ("free_completed", Action::FreeCompleted),
        ("segment_alloc", Action::SegmentAlloc),
        ("segment_free", Action::SegmentFree),
        ("segment_map", Action::SegmentMap),
        ("segment_unmap", Action::SegmentUnmap),
        ("snapshot", Action::Snapshot),
        ("annotate", Action::Annotate),
    ];
    let mut events: Vec<Value> = names.iter().map(|(name, _)| event(name, &[])).collect();
    events.push(event("oom", &[("device_free", Int(99)), ("category", Int(1))]));
    events.push(event("teleport", &[("forward_frames", frames("f"))]));
    let snapshot = read(&traced(events, &[]));
    let trace = &snapshot.device_traces[0];
    for (entry, (_, action)) in trace.iter().zip(names) {
        assert_eq!((entry.action, entry.address), (action, 4096));
    }
    assert_eq!((trace[9].action, trace[9].device_free, trace[9].address), (Action::Oom, 99, 0));
    let Action::Other(name) = trace[10].action else { panic!("{:?}", trace[10].action) };
    assert_eq!((snapshot.tables.string(name), snapshot.unknown_actions), ("teleport", 1));
    assert!(trace[10].forward_stack.is_some());
    assert_eq!(
        snapshot::read(&snapshot::write(&snapshot)).expect("round trip").device_traces,
        snapshot.device_traces
    );
}

#[test]
fn host_memory_is_counted() {
    let host = ("host_traces", List(vec![List(vec![event("alloc", &[])]), List(vec![])]));
    assert_eq!(read(&traced(vec![], &[host])).host_events, Some(1));
}

#[test]
fn wrong_values_are_named_by_their_place() {
    let check = |value: Value, expected: &str| match snapshot::read(&value.pickle()) {
        Err(error @ Error::Field { .. }) => assert_eq!(error.to_string(), expected),
        other => panic!("{other:?}"),
    };
    check(
        traced(vec![event("alloc", &[]), event("alloc", &[("addr", Text("x"))])], &[]),
        "`device_traces[0][1].addr` in the snapshot must be an int of 64 bits from 0 on, found str",
    );
    check(
        traced(vec![Dict(vec![("action", Text("alloc")), ("size", Int(1))])], &[]),
        "`device_traces[0][0].addr` in the snapshot must be an int, found nothing",
    );
    check(
        traced(vec![Int(1)], &[]),
        "`device_traces[0][0]` in the snapshot must be a dict, found int",
    );
    check(
        List(vec![segment(vec![Dict(vec![("size", Int(1)), ("state", Text("odd"))])], &[])]),
        "`segments[0].blocks[0].state` in the snapshot must be `active_allocated`, \
         `active_pending_free` or `inactive`, found something else",
    );
    check(Dict(vec![("segments", Int(1))]), "`segments` in the snapshot must be a list, found int");
}

#[test]
fn a_snapshot_of_a_pool_that_nobody_has() {
    let made_up = [("pool_id", Text("made up"))];
    let taken = read(&traced(vec![event("snapshot", &made_up)], &[]));
    assert_eq!(taken.device_traces[0][0].pool, None);
    let wrong = snapshot::read(&traced(vec![event("alloc", &made_up)], &[]).pickle());
    assert!(matches!(wrong, Err(Error::Field { .. })), "{wrong:?}");
}
