//! The smallest card and the ideal packing, on small programs and on recorded snapshots.

mod support;

use allocator::{
    Outcome, Requests, Settings, Start, fits, floor, pack, replay, validate::validate,
};
use recording::Recording;
use support::{Recorded, of_collection};

const MIB: u64 = 1 << 20;

fn recording(text: &str) -> Recording {
    recording::text::recording(text).unwrap()
}

/// 30 MiB are freed in two halves with a hole between, then 30 MiB are asked for again.
const HOLES: &str = "
alloc 0x1000 15728640
alloc 0x2000 11534336
alloc 0x3000 15728640
free_requested 0x1000 15728640
free_completed 0x1000 15728640
free_requested 0x3000 15728640
free_completed 0x3000 15728640
alloc 0x4000 31457280
";

#[test]
fn the_floor_is_met_and_one_byte_less_is_not() {
    let recording = recording(HOLES);
    for (conf, expected) in [("", 44 * MIB), ("expandable_segments:True", 60 * MIB)] {
        let settings = Settings { context: 100 * MIB, ..Settings::default() };
        let settings = settings.with_conf(conf).unwrap();
        let requests = Requests::of(&recording, &settings);
        let least = floor(&requests, &settings, Start::Kept).unwrap();
        assert_eq!(least, 100 * MIB + expected, "{conf}");
        assert!(fits(&requests, &settings, least, Start::Kept));
        assert!(!fits(&requests, &settings, least - 1, Start::Kept));
        let packing = pack(&requests, &settings);
        assert_eq!(packing.bound, 42_991_616);
        assert!(packing.bound <= packing.packed);
    }
}

/// A search for the fastest kernel takes 100 MiB for a moment, and does without if there is no room.
#[test]
fn what_pytorch_does_without_is_not_needed() {
    let text = |mark: &str| {
        format!(
            "alloc 0x1000 31457280\nalloc 0x2000 104857600\n{mark}\nfree_requested 0x2000 104857600\n\
             free_completed 0x2000 104857600\nalloc 0x3000 20971520\n"
        )
    };
    let settings = Settings { context: 100 * MIB, ..Settings::default() };
    for (mark, expected) in [("soft 0x2000", 150), ("", 230)] {
        let recording = recording(&text(mark));
        let requests = Requests::of(&recording, &settings);
        let least = floor(&requests, &settings, Start::Kept).unwrap();
        assert_eq!(least, expected * MIB, "{mark}");
        assert!(!fits(&requests, &settings, least - 1, Start::Kept));
        // Where there is room it is taken all the same.
        assert_eq!(pack(&requests, &settings).bound, 130 * MIB);
        let taken = requests.replay(&settings);
        assert_eq!(taken.stats.allocated_bytes.all.peak, 130 * MIB);
        let small = Settings { memory: Some(least), ..settings.clone() };
        let timeline = requests.replay(&small);
        assert_eq!(timeline.outcome, Outcome::Completed);
        validate(&recording, &timeline).unwrap();
        let most = timeline.stats.allocated_bytes.all.peak;
        assert_eq!(most, if mark.is_empty() { 130 } else { 50 } * MIB);
    }
}

#[test]
fn the_request_a_program_died_of_must_be_met_and_one_it_caught_need_not() {
    let least = |text: &str| {
        let (recording, settings) = (recording(text), Settings::default());
        let requests = Requests::of(&recording, &settings);
        (
            floor(&requests, &settings, Start::Kept).unwrap() / MIB,
            pack(&requests, &settings).bound / MIB,
        )
    };
    let died =
        "alloc 0x1000 33554432\noom 67108864 free 0 stream 0\nfree_requested 0x1000 33554432";
    assert_eq!(least(died), (96, 96));
    let caught = "alloc 0x1000 33554432\noom 67108864 free 0 stream 0\nalloc 0x2000 16777216";
    assert_eq!(least(caught), (48, 48));
}

#[test]
fn no_card_does_below_a_share_of_nothing() {
    let recording = recording("alloc 0x1000 33554432");
    let settings = Settings { memory_fraction: Some(0.0), ..Settings::default() };
    assert_eq!(floor(&Requests::of(&recording, &settings), &settings, Start::Kept), None);
    let half = Settings { memory_fraction: Some(0.5), ..Settings::default() };
    // PyTorch rounds the half of it up.
    let least = floor(&Requests::of(&recording, &half), &half, Start::Kept);
    assert_eq!(least, Some(64 * MIB - 1));
}

/// A trace that begins with a segment of 60 MiB of which 20 MiB are in use.
const MID_RUN: &str = "
segment 0x2000000 62914560 large stream 0
block 0x2000000 20971520 active_allocated requested 20971520
block 0x3400000 41943040 inactive requested 0
alloc 0x3400000 20971520
free_requested 0x3400000 20971520
free_completed 0x3400000 20971520
";

#[test]
fn a_start_is_kept_or_laid_out_anew() {
    let recording = recording(MID_RUN);
    let settings = Settings::default();
    let requests = Requests::of(&recording, &settings);
    assert_eq!(requests.reserved_at_start(), 60 * MIB);
    assert_eq!(requests.replay(&settings), replay(&recording, &settings));
    assert_eq!(requests.replay(&settings).stats.reserved_bytes.all.peak, 60 * MIB);
    let anew = requests.replay_anew(&settings);
    assert_eq!(anew.stats.reserved_bytes.all.peak, 40 * MIB);
    assert_eq!(anew.segment_counts(), (1, 0), "what the start took is not counted");
    let small = Settings { memory: Some(10 * MIB), ..settings.clone() };
    let Outcome::OutOfMemory { at, .. } = requests.replay_anew(&small).outcome else {
        panic!("10 MiB hold no 20");
    };
    assert_eq!(at, 0);
    assert_eq!(floor(&requests, &settings, Start::Kept), Some(40 * MIB));
}

#[test]
fn fragmentation_is_what_stays_unused_at_the_peak() {
    let timeline = replay(&recording(HOLES), &Settings::default());
    assert_eq!(timeline.stats.reserved_bytes.all.peak, 74 * MIB);
    // The two segments of 16 MiB that are free again, and too small.
    assert_eq!(timeline.fragmentation_at_peak(), 32 * MIB);
    assert_eq!(timeline.unmet(&recording(HOLES).events), None);
}

/// Every snapshot at hand: floors hold, and lie between the bound and the peak of an endless card.
#[test]
fn floors_of_recorded_snapshots() {
    for Recorded { name, recording } in support::of_repository().into_iter().chain(of_collection())
    {
        let settings = Settings::of(&recording.about).unwrap();
        let requests = Requests::of(&recording, &settings);
        for start in [Start::Kept, Start::Anew] {
            let least = floor(&requests, &settings, start).unwrap();
            let endless = requests.replay_on_card(&settings, start).timeline;
            let peak = endless.stats.reserved_bytes.all.peak;
            assert!(least <= peak + 2 * MIB, "{name}, {start:?}");
            assert!(pack(&requests, &settings).bound <= least, "{name}, {start:?}");
            assert!(fits(&requests, &settings, least, start), "{name}, {start:?}");
            assert!(!fits(&requests, &settings, least - 1, start), "{name}, {start:?}");
            // Not only by chance: a card that has a little more does not do worse.
            for more in 1..=8 {
                let memory = least + 2 * MIB * more;
                assert!(fits(&requests, &settings, memory, start), "{name}, {start:?}: {memory}");
            }
        }
    }
}
