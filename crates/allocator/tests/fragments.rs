//! Memory in pieces: maps of recorded moments, and why requests found no room.

use std::path::Path;

use allocator::fragments::{self, Fragments, Reason, Shortage};
use allocator::{Settings, replay, reproduce};
use recording::{BlockState, Event, Recording};

const MIB: u64 = 1 << 20;

fn recording(text: &str) -> Recording {
    recording::text::recording(text).unwrap()
}

/// A segment of 40 MiB, made for one request and then split among four, of which two are freed.
const COMB: &str = "
segment_alloc 0x2000000 41943040 stream 0
alloc 0x2000000 41943040
free_requested 0x2000000 41943040
free_completed 0x2000000 41943040
alloc 0x2000000 10485760
alloc 0x2a00000 10485760
alloc 0x3400000 10485760
alloc 0x3e00000 10485760
free_requested 0x2000000 10485760
free_completed 0x2000000 10485760
free_requested 0x3400000 10485760
free_completed 0x3400000 10485760
";

/// The comb when this request fails.
fn comb(request: &str) -> (Fragments, Shortage) {
    let recording = recording(&format!("{COMB}{request}\n"));
    let settings = Settings::default();
    let last = recording.events.len() - 1;
    let fragments = fragments::at(&recording, &settings, last).unwrap();
    let shortage = Shortage::of_event(&fragments, &settings, &recording.events[last]).unwrap();
    (fragments, shortage)
}

#[test]
fn a_map_shows_every_block_and_sums_up_pools() {
    let (map, _) = comb("oom 15728640 free 2097152 stream 0");
    let states: Vec<(u64, BlockState)> =
        map.segments[0].blocks.iter().map(|block| (block.size / MIB, block.state)).collect();
    let (free, used) = (BlockState::Inactive, BlockState::Allocated);
    assert_eq!(states, [(10, free), (10, used), (10, free), (10, used)]);
    let row = map.pools[0];
    assert_eq!((row.free, row.free_blocks, row.largest_free), (20 * MIB, 2, 10 * MIB));
    assert_eq!((row.reserved, row.allocated, row.releasable), (40 * MIB, 20 * MIB, 0));
    assert_eq!(map.free_blocks(&row).len(), 2);
}

#[test]
fn free_bytes_that_add_up_are_scattered() {
    let (_, shortage) = comb("oom 15728640 free 2097152 stream 0");
    assert_eq!(shortage.reason, Reason::Scattered);
    assert_eq!((shortage.own.free, shortage.own.largest_free), (20 * MIB, 10 * MIB));
    assert_eq!((shortage.segment, shortage.card_free), (16 * MIB, Some(2 * MIB)));
}

#[test]
fn a_block_of_another_stream_is_no_help() {
    let (_, shortage) = comb("oom 10485760 free 2097152 stream 7");
    assert_eq!(shortage.reason, Reason::OtherStream);
    assert_eq!((shortage.own.free, shortage.other_streams), (0, (20 * MIB, 10 * MIB)));
}

#[test]
fn the_small_pool_does_not_take_from_the_large_one() {
    let (_, shortage) = comb("oom 1048576 free 0 stream 0");
    assert_eq!(shortage.reason, Reason::OtherPools);
    assert_eq!((shortage.segment, shortage.other_kind), (2 * MIB, 20 * MIB));
}

#[test]
fn what_is_in_use_is_full() {
    let (_, shortage) = comb("oom 52428800 free 2097152 stream 0");
    assert_eq!(shortage.reason, Reason::Full);
}

#[test]
fn a_private_pool_keeps_to_itself() {
    let (_, shortage) = comb("oom 10485760 free 0 stream 0 pool 1.0");
    assert_eq!((shortage.reason, shortage.other_pools), (Reason::OtherPools, 20 * MIB));
}

#[test]
fn limits_are_told_from_small_cards() {
    let program = recording("alloc 0x1000 33554432\nalloc 0x2000 33554432");
    let reason = |settings: &Settings| {
        let timeline = replay(&program, settings);
        Shortage::of_replay(&program, settings, &timeline).map(|shortage| shortage.reason)
    };
    let card = Settings { memory: Some(96 * MIB), ..Settings::default() };
    assert_eq!(reason(&card), None);
    assert_eq!(
        reason(&Settings { memory_fraction: Some(0.5), ..card.clone() }),
        Some(Reason::Limit)
    );
    assert_eq!(reason(&Settings { memory: Some(48 * MIB), ..card.clone() }), Some(Reason::Full));
    let tiny = Settings { memory: Some(16 * MIB), ..card };
    assert_eq!(reason(&tiny), Some(Reason::LargerThanCard));
}

#[test]
fn blocks_that_streams_still_use_are_named() {
    let program = recording("alloc 0x1000 33554432\nfree_requested 0x1000 33554432");
    let settings = Settings::default();
    let timeline = replay(&program, &settings);
    let map = Fragments::of(timeline.finish);
    let shortage = Shortage::of(&map, &settings, (20 * MIB, 0, (0, 0)), Some(0));
    assert_eq!((shortage.reason, shortage.pending), (Reason::Pending, 32 * MIB));
}

/// Every recorded snapshot: the peak's map sums up to the peak; failed requests get a reason.
#[test]
fn maps_of_recorded_snapshots_sum_up() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = root.join("../shared/data/snapshots");
    if !shared.is_dir() {
        eprintln!("SKIPPED: `{}` is no folder of memory snapshots", shared.display());
    }
    let (mut seen, mut failed) = (0, 0);
    for folder in [root.join("tests/recorded"), shared] {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "pickle" && end != "pkl") {
                continue;
            }
            let snapshot = snapshot::read(&std::fs::read(&path).unwrap()).unwrap();
            for recording in snapshot::to_recordings(&snapshot) {
                failed += check(&recording);
                seen += 1;
            }
        }
    }
    assert!(3 <= seen, "tests/recorded/ holds snapshots");
    eprintln!("{seen} devices, {failed} failed requests");
}

/// What a free block was asked for last is nobody's.
fn bare(map: &Fragments) -> Fragments {
    let mut map = map.clone();
    let blocks = map.segments.iter_mut().flat_map(|segment| &mut segment.blocks);
    blocks
        .filter(|block| block.state == BlockState::Inactive)
        .for_each(|block| block.requested = 0);
    map
}

/// Gives the number of failed requests.
fn check(recording: &Recording) -> usize {
    let settings = Settings::of(&recording.about).unwrap();
    let timeline = reproduce(recording, &settings).timeline;
    if let Some(peak) = fragments::peak(&timeline) {
        let map = fragments::at(recording, &settings, peak).unwrap();
        assert_eq!(fragments::after(recording, &timeline, &settings, peak), Some(bare(&map)));
        let sum = |bytes: fn(&fragments::PoolUse) -> u64| map.pools.iter().map(bytes).sum::<u64>();
        let moment = timeline.moments[peak];
        // And at other moments, where requests ended.
        for at in (0..timeline.moments.len()).step_by(timeline.moments.len() / 16 + 1) {
            if matches!(recording.events[at], Event::Alloc { .. }) {
                let map = fragments::at(recording, &settings, at).unwrap();
                assert_eq!(fragments::after(recording, &timeline, &settings, at), Some(bare(&map)));
            }
        }
        assert_eq!(sum(|row| row.reserved), moment.reserved);
        assert_eq!(sum(|row| row.allocated), moment.allocated);
        assert_eq!(sum(|row| row.allocated + row.pending + row.free), moment.reserved);
    }
    let mut failed = 0;
    for (at, event) in recording.events.iter().enumerate() {
        let is_failure = matches!(event, recording::Event::OutOfMemory { .. });
        if is_failure {
            let map = fragments::at(recording, &settings, at).unwrap();
            assert_eq!(fragments::after(recording, &timeline, &settings, at), Some(bare(&map)));
            let shortage = Shortage::of_event(&map, &settings, event).unwrap();
            eprintln!("event {at}: {event}: {shortage:?}");
            assert!(shortage.own.largest_free < shortage.size, "no free block would have done");
            failed += 1;
        }
    }
    failed
}
