//! Where a recorded program called `empty_cache`.
//!
//! The call leaves no event of its own, only a run of segments given back. Such a run also stands
//! before a request that had no room. The two are told apart by what follows: a run that no new
//! segment follows was a call, unless the request got what unmapping left of an oversize block; one
//! that a new segment follows was a call too if the card could have held as much, for then
//! `cudaMalloc` cannot have failed. Garbage collection makes such runs also.

use recording::{Event, Recording};

use crate::settings::{SMALL_SEGMENT, SMALL_SIZE, Settings};

/// Calls of `empty_cache`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheCalls {
    /// Indices of events before which the cache is emptied, ascending.
    pub(crate) before: Vec<usize>,
}

impl CacheCalls {
    /// Reads them off a recording.
    pub(crate) fn of(recording: &Recording) -> CacheCalls {
        let events = &recording.events;
        let (mut now, most) = reserved(recording);
        let made = Settings::of(&recording.about).unwrap_or_default();
        let mut before = Vec::new();
        let mut at = 0;
        while at < events.len() {
            if !gives_back(&events[at]) {
                now = now.saturating_add_signed(change(&events[at]));
                at += 1;
                continue;
            }
            let run = events[at..].iter().take_while(|event| belongs(event)).count();
            let end = at + run;
            let taken: u64 = events[at..end].iter().map(taken).sum();
            let by_request = match events.get(end) {
                Some(Event::OutOfMemory { .. }) => true,
                Some(request @ Event::Alloc { .. }) if 0 < taken => {
                    let run = &events[at..end];
                    let had_room = now.saturating_add(taken) <= most && !is_garbage(run, &made);
                    !had_room && (waits(&events[..at]) || !could_serve(run, request, &made))
                }
                Some(request @ Event::Alloc { .. }) => {
                    let lacked = left_of_oversize(recording, (at, end), request, &made);
                    let is_known = recording.about.memory_bytes != 0;
                    is_known && lacked.is_some_and(|page| most < now.saturating_add(page))
                }
                _ => false,
            };
            if !by_request {
                // The call comes before the first of its events; new segments of the request follow.
                before.push(at);
            }
            let sum: i64 = events[at..end].iter().map(change).sum();
            now = now.saturating_add_signed(sum);
            at = end;
        }
        CacheCalls { before }
    }
}

/// Did streams just finish with a block? Then it may have been the request that waited for them.
fn waits(before: &[Event]) -> bool {
    match before {
        [.., Event::FreeRequested { address: asked, .. }, Event::FreeCompleted { address, .. }] => {
            asked != address
        }
        [.., Event::FreeCompleted { .. }] => true,
        _ => false,
    }
}

/// Is a segment of the run what the request looked for? It would have taken it, not given it back.
fn could_serve(run: &[Event], request: &Event, made: &Settings) -> bool {
    let Event::Alloc { size, stream: of, pool: its, .. } = *request else { return false };
    let size = made.round(size);
    run.iter().any(|event| match *event {
        Event::SegmentFree { size: segment, stream, pool, .. } => {
            (stream, pool, segment != SMALL_SEGMENT) == (of, its, SMALL_SIZE < size)
                && size <= segment
                && segment < made.max_split_size
        }
        _ => false,
    })
}

/// Did the request get the part in front of unmapped pages, of a block that its search had to leave
/// alone by `max_split_size`? Then this is the page that it asked the card for in vain.
fn left_of_oversize(
    recording: &Recording,
    (at, end): (usize, usize),
    request: &Event,
    made: &Settings,
) -> Option<u64> {
    let Event::Alloc { address, size, stream: of, pool: its, .. } = *request else { return None };
    let size = made.round(size);
    let page = made.page(SMALL_SIZE < size);
    let left = recording.events[at..end].iter().any(|event| match *event {
        Event::SegmentUnmap { address: pages, size: unmapped, stream, pool } => {
            // In front of the pages, and behind them, less than a page of the block stays.
            let whole = unmapped.saturating_add(page.saturating_mul(2));
            let front = pages.checked_sub(address);
            (stream, pool) == (of, its)
                && front.is_some_and(|front| size <= front && front < page)
                && made.max_split_size < whole
                // A block that could grow would have been taken whole.
                && was_mapped(recording, at, pages.saturating_add(unmapped))
        }
        _ => false,
    });
    (left && made.expands(its)).then_some(page)
}

/// Was there a page at this address before event `at`?
fn was_mapped(recording: &Recording, at: usize, address: u64) -> bool {
    let holds = |from: u64, size: u64| address.checked_sub(from).is_some_and(|into| into < size);
    let about = |event: &&Event| match event {
        Event::SegmentMap { address, size, .. } | Event::SegmentUnmap { address, size, .. } => {
            holds(*address, *size)
        }
        _ => false,
    };
    let (before, after) = recording.events.split_at(at);
    if let Some(last) = recording.start.iter().chain(before).rev().find(about) {
        return !gives_back(last);
    }
    let kept = || recording.finish.iter().any(|segment| holds(segment.address, segment.size));
    after.iter().find(about).map_or_else(kept, gives_back)
}

/// Can the run come from garbage collection? It leaves the small pool alone, and pages.
fn is_garbage(run: &[Event], made: &Settings) -> bool {
    let collected =
        |event: &Event| matches!(event, Event::SegmentFree { size, .. } if *size != SMALL_SEGMENT);
    0.0 < made.garbage_collection_threshold
        && run.iter().filter(|event| gives_back(event)).all(collected)
}

/// Bytes reserved at the beginning, and what the card can hold: what it was seen to hold if the
/// recording does not say.
fn reserved(recording: &Recording) -> (u64, u64) {
    let sum: i64 = recording.events.iter().map(change).sum();
    let start: i64 = if recording.finish.is_empty() {
        recording.start.iter().map(change).sum()
    } else {
        recording.finish.iter().map(|segment| segment.size as i64).sum::<i64>() - sum
    };
    let (mut now, mut peak) = (start, start);
    for event in &recording.events {
        now += change(event);
        peak = peak.max(now);
    }
    let usable = recording.about.memory_bytes.saturating_sub(recording.about.context_bytes);
    (start.max(0) as u64, usable.max(peak.max(0) as u64))
}

fn gives_back(event: &Event) -> bool {
    matches!(event, Event::SegmentFree { .. } | Event::SegmentUnmap { .. })
}

/// Can the event stand between a run's first segment and the request it was for?
fn belongs(event: &Event) -> bool {
    gives_back(event)
        || matches!(
            event,
            Event::SegmentAlloc { .. } | Event::SegmentMap { .. } | Event::FreeCompleted { .. }
        )
}

fn taken(event: &Event) -> u64 {
    change(event).max(0) as u64
}

/// Bytes by which an event changes what is reserved.
fn change(event: &Event) -> i64 {
    match event {
        Event::SegmentAlloc { size, .. } | Event::SegmentMap { size, .. } => *size as i64,
        Event::SegmentFree { size, .. } | Event::SegmentUnmap { size, .. } => -(*size as i64),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Vec<usize> {
        CacheCalls::of(&recording::text::recording(text).unwrap()).before
    }

    #[test]
    fn a_run_without_a_new_segment_is_a_call() {
        let text = "segment_alloc 0x200000 2097152\nsegment_free 0x200000 2097152\n";
        assert_eq!(calls(text), [1]);
        assert_eq!(calls(&format!("{text}free_requested 0x100 5")), [1]);
    }

    #[test]
    fn a_run_before_a_new_segment_is_a_call_if_there_was_room() {
        let start = "segment_alloc 0x200000 4194304\n";
        let retry =
            "segment_free 0x200000 4194304\nsegment_alloc 0x600000 2097152\nalloc 0x600000 1";
        assert!(calls(&format!("{start}{retry}")).is_empty());
        let more =
            "segment_alloc 0x8000000 4194304\nsegment_free 0x8000000 4194304\nfree_requested 1 1\n";
        assert_eq!(calls(&format!("{start}{more}{retry}")), [2, 4]);
        assert_eq!(calls(&format!("memory 100000000\n{start}{retry}")), [1]);
        assert!(calls("segment_free 0x200000 2097152\noom 512").is_empty());
    }

    #[test]
    fn a_run_that_leaves_a_part_for_the_request_is_none_if_the_card_was_full() {
        let run = "settings max_split_size_mb:64,expandable_segments:True
memory 146800639
segment_map 0x10000000 125829120
segment_unmap 0x12800000 62914560
alloc 0x11900000 2097152";
        assert!(calls(run).is_empty());
        let is_call = |from: &str, to: &str| {
            assert!(run.contains(from));
            assert_eq!(calls(&run.replace(from, to)), [1], "{to}");
        };
        is_call("memory 146800639", "memory 146800640");
        is_call("memory 146800639", "");
        is_call("alloc 0x11900000", "alloc 0x16400000");
        is_call("split_size_mb:64", "split_size_mb:100");
        is_call("max_split_size_mb:64,", "");
        is_call("2097152", "2097152 stream 1");
        // Nothing is mapped behind the pages: such a block can grow.
        is_call("0x12800000 62914560", "0x12800000 83886080");
    }

    #[test]
    fn a_request_does_not_give_back_what_it_could_have() {
        let run = "segment_alloc 0x200000 31457280\nsegment_free 0x200000 31457280\n\
                   segment_alloc 0x4000000 33554432\nalloc 0x4000000 ";
        assert_eq!(calls(&format!("{run}31457280")), [1]);
        assert!(calls(&format!("{run}33554432")).is_empty());
        assert!(calls(&format!("{run}31457280 stream 1")).is_empty());
    }

    #[test]
    fn a_run_of_garbage_collection_is_none() {
        let run = "segment_alloc 0x200000 4194304\nsegment_free 0x200000 4194304\n\
                   segment_alloc 0x600000 2097152\nalloc 0x600000 1";
        let settings = "memory 100000000\nsettings garbage_collection_threshold:0.5\n";
        assert!(calls(&format!("{settings}{run}")).is_empty());
        assert_eq!(calls(&format!("{settings}{}", run.replace("4194304", "2097152"))), [1]);
    }
}
