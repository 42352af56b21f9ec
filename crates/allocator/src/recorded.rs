//! A card that answers as it did in a recording, and notices when it is asked something else.

use std::collections::BTreeMap;

use recording::{Event, Segment};

use crate::reproduce::Difference;
use crate::source::SegmentSource;

/// Is it about a segment?
pub(crate) fn is_segment(event: &Event) -> bool {
    is_release(event) || matches!(event, Event::SegmentAlloc { .. } | Event::SegmentMap { .. })
}

/// Does it give memory back?
pub(crate) fn is_release(event: &Event) -> bool {
    matches!(event, Event::SegmentFree { .. } | Event::SegmentUnmap { .. })
}

/// The recorded segment events of one request after another.
#[derive(Clone, Debug)]
pub(crate) struct Recorded<'a> {
    events: &'a [Event],
    /// The next segment event to come.
    cursor: usize,
    /// The request they were for.
    end: usize,
    /// Segments and pages by address, with their ends.
    taken: BTreeMap<u64, u64>,
    /// The first difference.
    pub(crate) difference: Option<Difference>,
}

impl<'a> Recorded<'a> {
    /// Nothing asked yet.
    pub(crate) fn new(events: &'a [Event], start: &[Segment]) -> Recorded<'a> {
        let taken = start.iter().map(|segment| (segment.address, segment.address + segment.size));
        Recorded { events, cursor: 0, end: 0, taken: taken.collect(), difference: None }
    }

    /// The next request is the event `end`; segment events before it begin at `first`.
    pub(crate) fn open(&mut self, first: usize, end: usize) {
        (self.cursor, self.end) = (first, end);
    }

    /// All segment events of the request must have been asked for.
    pub(crate) fn close(&mut self) {
        if let Some(at) = self.peek() {
            self.differ(at, "nothing".to_owned());
        }
    }

    /// Keeps the first difference.
    pub(crate) fn differ(&mut self, event: usize, got: String) {
        let expected = self.events.get(event).map_or("nothing".to_owned(), ToString::to_string);
        self.difference.get_or_insert(Difference { event, expected, got });
    }

    /// Index of the next segment event of this request.
    fn peek(&mut self) -> Option<usize> {
        while self.cursor < self.end && !is_segment(&self.events[self.cursor]) {
            self.cursor += 1;
        }
        (self.cursor < self.end).then_some(self.cursor)
    }

    /// Goes past the next segment event if it is this one; notes the difference if it is not.
    fn expect(&mut self, event: &Event) -> bool {
        let next = self.peek();
        let same = next.is_some_and(|at| self.events[at] == *event);
        if same {
            self.cursor += 1;
        } else {
            self.differ(next.unwrap_or(self.end), event.to_string());
        }
        same
    }

    /// Had the recorded card no room here? Then memory was given back, or the request failed.
    fn refused(&mut self) -> bool {
        match self.peek() {
            Some(at) => is_release(&self.events[at]),
            None => matches!(self.events.get(self.end), Some(Event::OutOfMemory { .. })),
        }
    }

    /// Takes a range of addresses that must be free.
    fn take(&mut self, address: u64, size: u64) -> bool {
        let end = address.checked_add(size).filter(|end| *end <= 1 << 62);
        let before = self.taken.range(..end.unwrap_or(0)).next_back();
        let free = before.is_none_or(|(_, taken_end)| *taken_end <= address);
        match end {
            Some(end) if free => drop(self.taken.insert(address, end)),
            _ => self.differ(self.cursor, "addresses that are free".to_owned()),
        }
        end.is_some() && free
    }

    /// Gives a range back, which may be a part of what was taken.
    fn untake(&mut self, address: u64, size: u64) {
        let end = address + size;
        while let Some((from, to)) = self.taken.range(..end).next_back().map(|(a, b)| (*a, *b)) {
            if to <= address {
                break;
            }
            self.taken.remove(&from);
            if from < address {
                self.taken.insert(from, address);
            }
            if end < to {
                self.taken.insert(end, to);
            }
        }
    }
}

impl SegmentSource for Recorded<'_> {
    fn allocate(&mut self, size: u64, stream: u64, pool: (u32, u32)) -> Option<u64> {
        if self.refused() {
            return None;
        }
        let next = self.peek().map(|at| self.events[at]);
        let address = match next {
            Some(Event::SegmentAlloc { address, .. }) => address,
            _ => 0,
        };
        let same = self.expect(&Event::SegmentAlloc { address, size, stream, pool });
        (same && self.take(address, size)).then_some(address)
    }

    fn reserve(&mut self, _size: u64) -> Option<u64> {
        let events = self.events.get(self.cursor..self.end)?;
        events.iter().find_map(|event| match event {
            Event::SegmentMap { address, .. } => Some(*address),
            _ => None,
        })
    }

    fn map(&mut self, address: u64, size: u64, stream: u64, pool: (u32, u32)) -> bool {
        if self.refused() {
            return false;
        }
        self.expect(&Event::SegmentMap { address, size, stream, pool }) && self.take(address, size)
    }

    fn give_back(&mut self, event: &Event) {
        self.expect(event);
        if let Event::SegmentFree { address, size, .. }
        | Event::SegmentUnmap { address, size, .. } = event
        {
            self.untake(*address, *size);
        }
    }

    fn free_bytes(&self) -> Option<u64> {
        match self.events.get(self.end) {
            Some(Event::OutOfMemory { free, .. }) => Some(*free),
            _ => None,
        }
    }
}
