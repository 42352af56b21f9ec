//! Pages go back for a request that had no room, or because `empty_cache` was called. A trace shows
//! the same events for both; the block of the next request tells which it was.

use allocator::{Settings, Stats, reproduce};
use recording::text;

const MIB: u64 = 1 << 20;

/// One expandable segment of 120 MiB; the arguments are MiB from its beginning. What lies from 25 to
/// `end` is free, too large for a small request under `max_split_size_mb:64`, and its pages from 40
/// to 100 go. Then 2 MiB are placed: at 25, in front of those pages, or at 100, behind them.
///
/// `trace(105, 25)` is what torch 2.6, 2.13 and 2.15 do with `differential/programs/retry.txt`.
fn trace(end: u64, place: u64) -> String {
    let at = |mib: u64| format!("{:#x}", 0x7f00_0000_0000 + mib * MIB);
    let range = |from: u64, to: u64| format!("{} {}", at(from), (to - from) * MIB);
    let used =
        |range: &str, mib: u64| format!("block {range} active_allocated requested {}", mib * MIB);
    let part = |from: u64, to: u64| {
        if place != from {
            return format!("block {} inactive", range(from, to));
        }
        let (front, rest) = (range(from, from + 2), range(from + 2, to));
        format!("{}\nblock {rest} inactive", used(&front, 2))
    };
    let (first, last) = (range(0, 25), range(end, 120));
    let lines = [
        "torch 2.9.1\nsettings max_split_size_mb:64,expandable_segments:True".to_owned(),
        format!("segment {} large stream 0 expandable", range(0, 40)),
        used(&first, 25),
        part(25, 40),
        format!("segment {} large stream 0 expandable", range(100, 120)),
        part(100, end),
        used(&last, 120 - end),
        format!("segment_map {}\nalloc {first}", range(0, 40)),
        format!("segment_map {}\nalloc {}", range(40, 120), range(25, end)),
        format!("alloc {last}"),
        format!("free_requested {0}\nfree_completed {0}", range(25, end)),
        format!("segment_unmap {}", range(40, 100)),
        format!("alloc {}", range(place, place + 2)),
    ];
    lines.join("\n")
}

/// Statistics of the reproduced trace, on a card of so many MiB if that is known.
fn reproduced(trace: &str, card: Option<u64>) -> Stats {
    let recording = text::recording(trace).unwrap();
    let memory = card.map(|mib| mib * MIB);
    let settings = Settings { memory, ..Settings::of(&recording.about).unwrap() };
    let result = reproduce(&recording, &settings);
    assert_eq!(result.difference, None, "{trace}");
    assert_eq!(result.timeline.stats.num_sync_all_streams, 1);
    result.timeline.stats
}

#[test]
fn a_retry_takes_the_lowest_part_that_unmapping_left() {
    for card in [None, Some(130)] {
        assert_eq!(reproduced(&trace(105, 25), card).num_alloc_retries, 1);
    }
}

#[test]
fn after_a_call_of_empty_cache_the_search_avoids_what_can_grow() {
    for card in [None, Some(130)] {
        assert_eq!(reproduced(&trace(105, 100), card).num_alloc_retries, 0);
    }
}

#[test]
fn what_both_explain_is_a_retry_if_the_card_was_full() {
    // 1 MiB is left behind the pages: only the part in front of them is large enough.
    let retries = |card| reproduced(&trace(101, 25), card).num_alloc_retries;
    assert_eq!([None, Some(140), Some(139)].map(retries), [0, 0, 1]);
}
