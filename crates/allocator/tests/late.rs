//! Deferred frees that complete at once, as recorded, and as late as a card may complete them.

use allocator::{Requests, Settings, Timeline, deferred, reproduce};
use recording::text;

const BLOCK: u64 = 20 << 20;

/// Three requests of one block, each given back on behalf of another stream; the marks stand before
/// the second and before the third request.
fn trace(before_second: &str, before_third: &str) -> String {
    let free = "free_requested 0x200000 20971520\ndeferred\n";
    let again = "free_completed 0x200000 20971520\nalloc 0x200000 20971520\n";
    format!(
        "torch 2.15.0\nsegment_alloc 0x200000 20971520\nalloc 0x200000 20971520\n\
         {free}{before_second}\n{again}{free}{before_third}\n{again}"
    )
}

fn late(text: &str) -> Option<Timeline> {
    let recording = text::recording(text).unwrap();
    let settings = Settings::of(&recording.about).unwrap();
    let result = reproduce(&recording, &settings);
    assert_eq!(result.difference, None);
    assert_eq!(result.timeline.stats.reserved_bytes.all.peak, BLOCK, "what was recorded");
    let late = Requests::of(&recording, &settings).replay_late(&settings);
    if let Some(late) = &late {
        let allocated = |timeline: &Timeline| timeline.stats.allocated_bytes.all.peak;
        assert_eq!(allocated(late), allocated(&result.timeline), "the order changes nothing there");
    }
    late
}

fn reserved(before_second: &str, before_third: &str) -> u64 {
    late(&trace(before_second, before_third)).unwrap().stats.reserved_bytes.all.peak
}

#[test]
fn frees_that_are_marked_are_deferred() {
    let recording = text::recording(&trace("", "phase forward step 1")).unwrap();
    assert_eq!(deferred(&recording.events), [2, 6]);
    let plain = text::recording(&trace("", "").replace("deferred\n", "")).unwrap();
    assert!(deferred(&plain.events).is_empty());
}

#[test]
fn late_frees_reserve_more_until_the_host_has_waited() {
    assert_eq!(reserved("idle free 0", "idle free 1"), BLOCK, "the host waited for each");
    assert_eq!(reserved("", "idle free 0\nidle free 1"), 2 * BLOCK, "one step late");
    assert_eq!(reserved("", "idle free 0"), 2 * BLOCK);
    assert_eq!(reserved("idle free 7", ""), 3 * BLOCK, "never");
}

#[test]
fn of_two_streams_the_later_counts() {
    assert_eq!(reserved("idle free 0", "idle free 0\nidle free 1"), 2 * BLOCK);
}

#[test]
fn nothing_is_said_where_waits_were_not_recorded() {
    assert_eq!(late(&trace("", "")), None);
}

#[test]
fn a_card_that_is_full_waits_for_its_streams() {
    let memory = "memory 31457280\n";
    let timeline = late(&format!("{memory}{}", trace("", "idle free 7"))).unwrap();
    assert_eq!(timeline.stats.reserved_bytes.all.peak, BLOCK);
    assert_eq!(timeline.stats.num_ooms, 0, "the request is tried again");
    assert_eq!(timeline.stats.num_alloc_retries, 2);
}
