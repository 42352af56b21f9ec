//! Traces of real cards, cut anywhere. A ring buffer keeps the last events, so it begins in the middle of
//! whatever happened: such a trace is reproduced. One whose end is missing contradicts the blocks that
//! the snapshot lists: it is refused, and the reason is said.

mod support;

use allocator::{Requests, Settings, Start, contradiction, fits, floor, pack, reproduce};
use recording::{Event, Recording};
use support::Recorded;

/// Where to cut: places all over the trace, of every kind of event.
fn places(events: &[Event], count: usize) -> Vec<usize> {
    let mut places: Vec<usize> =
        (0..count).map(|index| events.len() * index / count + index % 7).collect();
    for kind in [
        |event: &Event| matches!(event, Event::FreeCompleted { .. }),
        |event: &Event| matches!(event, Event::FreeRequested { .. }),
        |event: &Event| matches!(event, Event::SegmentAlloc { .. } | Event::SegmentMap { .. }),
        |event: &Event| matches!(event, Event::SegmentFree { .. } | Event::SegmentUnmap { .. }),
    ] {
        places.extend(events.iter().position(kind));
        places.extend(events.iter().rposition(kind));
    }
    places.retain(|place| *place < events.len());
    places
}

/// What is left from an event on; also the smallest card and the packing must be found.
fn check_fronts(Recorded { name, recording }: &Recorded, count: usize) {
    let settings = Settings::of(&recording.about).unwrap();
    for (index, from) in places(&recording.events, count).into_iter().enumerate() {
        let tail = Recording { events: recording.events[from..].to_vec(), ..recording.clone() };
        let result = reproduce(&tail, &settings);
        assert_eq!(result.difference, None, "{name} from event {from} on");
        let requests = Requests::of(&tail, &settings);
        let packing = pack(&requests, &settings);
        assert!(packing.bound <= packing.packed, "{name} from event {from} on");
        if index % 4 == 0 {
            check_floor(&requests, &settings, &format!("{name} from event {from} on"));
        }
    }
}

fn check_floor(requests: &Requests<'_>, settings: &Settings, what: &str) {
    for start in [Start::Kept, Start::Anew] {
        let least = floor(requests, settings, start).unwrap();
        assert!(fits(requests, settings, least, start), "{what}, {start:?}: {least}");
        assert!(!fits(requests, settings, least - 1, start), "{what}, {start:?}: {least}");
    }
}

/// What is left up to an event: either nothing after it mattered, or the contradiction is found.
fn check_backs(Recorded { name, recording }: &Recorded, count: usize) -> usize {
    let settings = Settings::of(&recording.about).unwrap();
    let mut found = 0;
    for until in places(&recording.events, count) {
        let head = Recording { events: recording.events[..until].to_vec(), ..recording.clone() };
        if reproduce(&head, &settings).difference.is_some() {
            let why = contradiction(&head);
            found += usize::from(why.is_some());
            assert!(why.is_none_or(|why| why.event < until), "{name} up to event {until}");
        }
    }
    found
}

#[test]
fn traces_of_the_repository_cut_anywhere() {
    let mut found = 0;
    for recorded in support::of_repository() {
        check_fronts(&recorded, 60);
        found += check_backs(&recorded, 60);
    }
    assert!(50 < found, "{found} contradictions");
}

#[test]
fn traces_of_a_folder_cut_anywhere() {
    for recorded in support::of_collection() {
        check_fronts(&recorded, 6);
        check_backs(&recorded, 6);
    }
}
