//! Does the state that a file lists at its end follow from its events?

use std::collections::HashSet;

use recording::{BlockState, Event, Recording};

/// An event that the listed end contradicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Index of the recording's event.
    pub event: usize,
    pub event_text: String,
    /// Its block is in use at the end although it was freed; else it is not, and was never freed.
    pub is_there: bool,
}

/// The last event that does not go with the blocks at the end; `None` if all do, or if the file says what
/// was there at the beginning.
pub fn contradiction(recording: &Recording) -> Option<Contradiction> {
    if !recording.start.is_empty() || recording.finish.is_empty() {
        return None;
    }
    let blocks = recording.finish.iter().flat_map(|segment| &segment.blocks);
    let used = blocks.filter(|block| block.state != BlockState::Inactive);
    let mut used: HashSet<u64> = used.map(|block| block.address).collect();
    for (index, event) in recording.events.iter().enumerate().rev() {
        let (goes, is_there) = match event {
            Event::Alloc { address, .. } => (used.remove(address), false),
            Event::FreeCompleted { address, .. } => (used.insert(*address), true),
            _ => continue,
        };
        if !goes {
            return Some(Contradiction { event: index, event_text: event.to_string(), is_there });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(events: &str, blocks: &str) -> Option<(usize, bool)> {
        let end = "segment 0x200000 4096 small stream 0\n";
        let recording = recording::text::recording(&format!("{events}{end}{blocks}")).unwrap();
        contradiction(&recording).map(|found| (found.event, found.is_there))
    }

    #[test]
    fn the_last_event_that_does_not_go_with_the_end_is_named() {
        let used = "block 0x200000 512 active_allocated requested 512\n";
        let free = "block 0x200000 512 inactive requested 0\n";
        let (made, freed) = ("alloc 0x200000 512\n", "free_completed 0x200000 512\n");
        assert_eq!(found(made, used), None);
        assert_eq!(found(made, free), Some((0, false)));
        assert_eq!(found(freed, free), None);
        assert_eq!(found(freed, used), Some((0, true)));
        assert_eq!(found(&format!("{made}{freed}{made}"), used), None);
    }
}
