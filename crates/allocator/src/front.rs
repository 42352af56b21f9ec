//! Where expandable segments begin whose first pages are not mapped when a recording starts.
//!
//! The state shows mapped ranges only. PyTorch maps the lowest pages that do, so what lies before the
//! first range matters as soon as it is mapped again, and only then: that event tells where it is.

use std::collections::HashMap;

use recording::{Event, Segment};

use crate::pool::PoolId;
use crate::settings::{SMALL_SEGMENT, Settings};

/// Pool, large or small, stream.
pub(crate) type ListName = (PoolId, bool, u64);

/// First addresses of expandable segments that begin before their first mapped range.
pub(crate) type Fronts = HashMap<ListName, u64>;

/// An expandable segment, as far as it is known.
struct Known {
    first: u64,
    /// Bytes of its pages now; without any it is given up, and the next lies elsewhere.
    mapped: u64,
}

/// Reads them off the events that follow a state.
pub(crate) fn fronts(start: &[Segment], events: &[Event], settings: &Settings) -> Fronts {
    let mut known: HashMap<ListName, Known> = HashMap::new();
    for segment in start.iter().filter(|segment| segment.expandable) {
        let name = (segment.pool, segment.large, segment.stream);
        let entry = known.entry(name).or_insert(Known { first: segment.address, mapped: 0 });
        entry.first = entry.first.min(segment.address);
        entry.mapped = entry.mapped.saturating_add(segment.size);
    }
    let mut fronts = Fronts::new();
    for event in events {
        // Everything may have been given up: most recordings have no pages at all.
        if known.is_empty() {
            break;
        }
        match *event {
            Event::SegmentMap { address, size, stream, pool } => {
                // Small requests map one page at a time, large ones never as little.
                let name = (pool, size != SMALL_SEGMENT, stream);
                let Some(entry) = known.get_mut(&name) else { continue };
                entry.mapped = entry.mapped.saturating_add(size);
                if address < entry.first && on_page(entry, address, settings.page(name.1)) {
                    entry.first = address;
                    fronts.insert(name, address);
                }
            }
            Event::SegmentUnmap { address, size, stream, pool } => {
                let of = |large: &bool| {
                    let page = settings.page(*large);
                    let entry = known.get(&(pool, *large, stream));
                    size.is_multiple_of(page)
                        && entry.is_some_and(|entry| on_page(entry, address, page))
                };
                let Some(large) = [true, false].into_iter().find(of) else { continue };
                let name = (pool, large, stream);
                let Some(entry) = known.get_mut(&name) else { continue };
                entry.mapped = entry.mapped.saturating_sub(size);
                if entry.mapped == 0 {
                    known.remove(&name);
                }
            }
            _ => {}
        }
    }
    fronts
}

/// Is the address a whole number of pages away?
fn on_page(entry: &Known, address: u64, page: u64) -> bool {
    page != 0 && entry.first.abs_diff(address).is_multiple_of(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fronts of large segments of stream 0, after a state of one page at 0x7f0001400000.
    fn front(events: &str) -> Option<u64> {
        let state = "segment 0x7f0001400000 20971520 large stream 0 expandable";
        let start = recording::text::recording(state).unwrap().finish;
        let events = recording::text::parse(events).unwrap();
        fronts(&start, &events, &Settings::default()).get(&((0, 0), true, 0)).copied()
    }

    #[test]
    fn pages_mapped_before_the_first_range_tell_where_it_begins() {
        assert_eq!(front("segment_map 0x7f0002800000 20971520"), None);
        assert_eq!(front("segment_map 0x7f0000000000 20971520"), Some(0x7f00_0000_0000));
        // Pages of the small pool, of another stream, and not a whole number of pages before.
        assert_eq!(front("segment_map 0x7f0000000000 2097152"), None);
        assert_eq!(front("segment_map 0x7f0000000000 20971520 stream 1"), None);
        assert_eq!(front("segment_map 0x7f0000200000 20971520"), None);
    }

    #[test]
    fn a_segment_that_was_given_up_tells_nothing() {
        let unmap = "segment_unmap 0x7f0001400000 20971520\n";
        assert_eq!(front(&format!("{unmap}segment_map 0x7f0000000000 20971520")), None);
    }
}
