//! The size of a card that a file does not tell. With expandable segments PyTorch reserves addresses for the whole card
//! and an eighth more, so where blocks lie may depend on its size: the size that gives what was recorded is the right one.

use allocator::{Settings, reproduce};
use recording::{Event, Recording};

/// Sizes of cards that are sold, in GiB, the most common first.
const SOLD: [u64; 17] = [80, 24, 40, 16, 48, 12, 8, 11, 32, 10, 6, 20, 22, 94, 96, 141, 192];

/// Settings with the size of the card, and a note if it was found by trying; `asked` is tried first.
pub fn sized(
    recording: &Recording,
    settings: Settings,
    asked: Option<u64>,
) -> (Settings, Option<String>) {
    let grows = |event: &Event| matches!(event, Event::SegmentMap { .. });
    if settings.memory.is_some()
        || !recording.events.iter().any(grows)
        || reproduce(recording, &settings).difference.is_none()
    {
        return (settings, None);
    }
    let sold = SOLD.map(|gib| gib << 30);
    for bytes in asked.into_iter().chain(sold) {
        let tried = Settings { memory: Some(bytes), ..settings.clone() };
        if reproduce(recording, &tried).difference.is_none() {
            let size = anatomy::bytes::text(bytes);
            let note = format!(
                "the file does not tell the card's size; on one of {size} the replay is what was recorded"
            );
            return (tried, Some(note));
        }
    }
    (settings, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests as a card of this size would have met them.
    fn played(memory: u64, requests: &str) -> Recording {
        let asked = "torch 2.15.0\nsettings expandable_segments:True\n";
        let requests = recording::text::recording(&format!("{asked}{requests}")).unwrap();
        let settings = Settings::of(&requests.about).unwrap();
        let settings = Settings { memory: Some(memory), ..settings };
        let timeline = allocator::replay(&requests, &settings);
        let mut played = Recording { about: requests.about.clone(), ..Recording::default() };
        let mut segments = timeline.segments.iter().peekable();
        let mut places = std::collections::HashMap::new();
        for (at, (event, moment)) in requests.events.iter().zip(&timeline.moments).enumerate() {
            while let Some(segment) = segments.next_if(|segment| segment.at <= at) {
                played.events.push(segment.event);
            }
            played.events.push(match *event {
                Event::Alloc { address: name, size, stream, owner, pool } => {
                    let address = moment.address;
                    places.insert(name, address);
                    Event::Alloc { address, size, stream, owner, pool }
                }
                Event::FreeRequested { address, size } => {
                    Event::FreeRequested { address: places[&address], size }
                }
                Event::FreeCompleted { address, size } => {
                    Event::FreeCompleted { address: places[&address], size }
                }
                other => other,
            });
        }
        played.finish.clone_from(&timeline.finish);
        played
    }

    /// Pages of a segment that cannot hold a third request on a small card: it begins another segment.
    fn recorded(memory: u64) -> Recording {
        played(memory, "alloc 0x1 5368709120\nalloc 0x2 2147483648\nalloc 0x3 1073741824\n")
    }

    /// 13 GiB go, and 14 GiB come: neither in front of the block between them nor behind it are so many addresses, if the
    /// card has 24 GiB and its segment 27.
    const CROWDED: &str = "\
alloc 0x1 13958643712
alloc 0x2 1073741824
free_requested 0x1 13958643712
free_completed 0x1 13958643712
alloc 0x3 15032385536
";

    #[test]
    fn a_recording_is_replayed_on_any_card_unless_that_differs() {
        let recording = recorded(80 << 30);
        let settings = Settings::of(&recording.about).unwrap();
        assert_eq!(settings.memory, None);
        let (sized, note) = sized(&recording, settings.clone(), None);
        assert_eq!((sized == settings, note), (true, None));
    }

    #[test]
    fn a_size_that_is_not_told_is_found_by_search() {
        let recording = played(24 << 30, CROWDED);
        let settings = Settings::of(&recording.about).unwrap();
        assert!(reproduce(&recording, &settings).difference.is_some(), "an endless card differs");
        let (found, note) = sized(&recording, settings, None);
        assert_eq!(found.memory, Some(24 << 30));
        assert!(note.unwrap().contains("on one of 24.00 GiB the replay is what was recorded"));
    }

    #[test]
    fn the_size_that_is_asked_for_is_tried_first() {
        let recording = played(24 << 30, CROWDED);
        let settings = Settings::of(&recording.about).unwrap();
        // No such card is sold, but it gives what was recorded as well.
        let asked = (24 << 30) - (100 << 20);
        assert_eq!(sized(&recording, settings.clone(), Some(asked)).0.memory, Some(asked));
        // One that does not is not believed.
        assert_eq!(sized(&recording, settings, Some(80 << 30)).0.memory, Some(24 << 30));
    }

    #[test]
    fn what_cannot_be_on_any_card_stays_unknown() {
        let mut recording = recorded(80 << 30);
        let moved = recording.events.iter_mut().rev().find_map(|event| match event {
            Event::Alloc { address, .. } => Some(address),
            _ => None,
        });
        *moved.unwrap() += 512;
        let settings = Settings::of(&recording.about).unwrap();
        let (sized, note) = sized(&recording, settings.clone(), Some(24 << 30));
        assert_eq!((sized == settings, note), (true, None));
    }
}
