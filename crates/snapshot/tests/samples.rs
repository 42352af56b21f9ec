//! Snapshots of real cards: our totals are those of an independent count (`count.py`), and
//! writing and reading again changes nothing.

mod support;

use std::collections::BTreeMap;

use snapshot::{Action, Block, BlockState, Contents, Snapshot, TraceEntry};

/// The same line as `count.py` prints, without the file name.
fn counts(snapshot: &Snapshot) -> String {
    let segments = &snapshot.segments;
    let blocks: Vec<&Block> = segments.iter().flat_map(|segment| &segment.blocks).collect();
    let events: Vec<&TraceEntry> = snapshot.device_traces.iter().flatten().collect();
    let in_state = |state| blocks.iter().filter(|block| block.state == state).count();
    let mut actions = BTreeMap::<String, u64>::new();
    for event in &events {
        *actions.entry(name(event.action)).or_default() += 1;
    }
    let actions: Vec<String> = actions.iter().map(|(name, n)| format!("{name}={n}")).collect();
    let traces: Vec<String> = snapshot.device_traces.iter().map(|t| t.len().to_string()).collect();
    let sum =
        |field: fn(&TraceEntry) -> u64| events.iter().map(|e| u128::from(field(e))).sum::<u128>();
    let depth = |event: &&TraceEntry| event.stack.map_or(0, |id| snapshot.tables.stack(id).len());
    let states = [BlockState::Allocated, BlockState::PendingFree, BlockState::Inactive];
    [
        format!("segments={}", segments.len()),
        format!("reserved={}", segments.iter().map(|s| s.total_size).sum::<u64>()),
        format!("allocated={}", segments.iter().map(|s| s.allocated_size).sum::<u64>()),
        format!("active={}", segments.iter().map(|s| s.active_size).sum::<u64>()),
        format!("requested={}", segments.iter().filter_map(|s| s.requested_size).sum::<u64>()),
        format!("blocks={}", blocks.len()),
        format!("block_bytes={}", blocks.iter().map(|b| b.size).sum::<u64>()),
        format!("block_requested={}", blocks.iter().filter_map(|b| b.requested_size).sum::<u64>()),
        format!("block_addresses={}", blocks.iter().map(|b| b.address).sum::<u64>()),
        format!("states={}", states.map(|state| in_state(state).to_string()).join("/")),
        format!("events={}", traces.join("/")),
        format!("actions={}", actions.join(",")),
        format!("addresses={}", sum(|e| e.address)),
        format!("sizes={}", sum(|e| e.size)),
        format!("streams={}", sum(|e| e.stream)),
        format!("times={}", sum(|e| e.time_us)),
        format!("device_free={}", sum(|e| e.device_free)),
        format!("stacks={}", snapshot.tables.stack_count()),
        format!("frames={}", snapshot.tables.frames.len()),
        format!("frames_in_events={}", events.iter().map(depth).sum::<usize>()),
        format!("annotations={}", snapshot.annotations.as_ref().map_or(0, Vec::len)),
        format!("conf='{}'", snapshot.settings.as_ref().map_or("", |s| &s.conf)),
    ]
    .join(" ")
}

fn name(action: Action) -> String {
    let debug = format!("{action:?}");
    debug.chars().fold(String::new(), |mut name, letter| {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
        name
    })
}

#[test]
fn totals_are_those_of_an_independent_count() {
    let golden: BTreeMap<&str, &str> =
        include_str!("counts.txt").lines().filter_map(|line| line.split_once(' ')).collect();
    let paths = support::samples();
    assert!(paths.len() >= 3, "the recorded samples are not there");
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let snapshot = snapshot::read(&std::fs::read(&path).expect("sample")).expect(name);
        assert_eq!(snapshot.contents(), Contents::History);
        assert_eq!(Some(&*counts(&snapshot)), golden.get(name).copied(), "{name}");
    }
}

#[test]
fn blocks_tile_their_segments() {
    for path in support::samples() {
        let snapshot = snapshot::read(&std::fs::read(&path).expect("sample")).expect("snapshot");
        for segment in &snapshot.segments {
            let mut end = segment.address;
            for block in &segment.blocks {
                assert_eq!(block.address, end, "{}", path.display());
                end += block.size;
            }
            assert_eq!(end, segment.address + segment.total_size, "{}", path.display());
        }
    }
}

#[test]
fn reading_what_was_written_gives_the_same() {
    for path in support::samples() {
        let bytes = std::fs::read(&path).expect("sample");
        let first = snapshot::read(&bytes).expect("snapshot");
        let written = snapshot::write(&first);
        let second = snapshot::read(&written).expect("written snapshot");
        assert!(first == second, "{} changed", path.display());
        assert_eq!(snapshot::write(&second), written);
    }
}
