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

    /// Pages of a segment that cannot hold a third request on a small card: it begins another segment.
    fn recorded(memory: u64) -> Recording {
        let asked = "torch 2.15.0\nsettings expandable_segments:True\n";
        let requests = "alloc 0x1 5368709120\nalloc 0x2 2147483648\nalloc 0x3 1073741824\n";
        let requests = recording::text::recording(&format!("{asked}{requests}")).unwrap();
        let settings = Settings::of(&requests.about).unwrap();
        let settings = Settings { memory: Some(memory), ..settings };
        let timeline = allocator::replay(&requests, &settings);
        let mut played = Recording { about: requests.about.clone(), ..Recording::default() };
        let mut segments = timeline.segments.iter().peekable();
        for (at, (event, moment)) in requests.events.iter().zip(&timeline.moments).enumerate() {
            while let Some(segment) = segments.next_if(|segment| segment.at <= at) {
                played.events.push(segment.event);
            }
            let Event::Alloc { size, stream, owner, pool, .. } = *event else { continue };
            let address = moment.address;
            played.events.push(Event::Alloc { address, size, stream, owner, pool });
        }
        played
    }

    #[test]
    fn a_recording_is_replayed_on_any_card_unless_that_differs() {
        let recording = recorded(80 << 30);
        let settings = Settings::of(&recording.about).unwrap();
        assert_eq!(settings.memory, None);
        let (sized, note) = sized(&recording, settings.clone(), None);
        assert_eq!((sized == settings, note), (true, None));
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
