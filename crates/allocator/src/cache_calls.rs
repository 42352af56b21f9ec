//! Where a recorded program called `empty_cache`.
//!
//! The call leaves no event of its own, only a run of segments given back. Such a run also stands
//! before a request that had no room. The two are told apart by what follows: a run that no new
//! segment follows was a call; one that a new segment follows was a call too if the card had held
//! as much before, for then `cudaMalloc` cannot have failed.

use recording::{Event, Recording};

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
        let (reserved, peak) = reserved(recording);
        let mut now = reserved;
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
            let is_request =
                matches!(events.get(end), Some(Event::Alloc { .. } | Event::OutOfMemory { .. }));
            let failed = is_request
                && match events[end] {
                    Event::OutOfMemory { .. } => true,
                    _ => 0 < taken && peak < now.saturating_add(taken),
                };
            if !failed {
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

/// Bytes reserved at the beginning and at the most, as recorded.
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
    (start.max(0) as u64, peak.max(0) as u64)
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
        assert!(calls("segment_free 0x200000 2097152\noom 512").is_empty());
    }
}
