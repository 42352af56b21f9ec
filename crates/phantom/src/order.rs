//! What the host knows about the order of work: which of it must be done, because the host waited.
//!
//! Work takes no time here, so it is done as soon as it is launched. On a real card it may be done as
//! late as the host's next wait for it. Both ends are kept: streams count how far the host has waited,
//! and a stream that waits for another's event hands that wait on.
//!
//! ```text
//! side   ──work──▶ event ┐
//! main   ────────────────┴─ joins ──work──▶ host waits: side is done up to its event, too
//! ```

use std::collections::BTreeMap;

/// A stream of a card; the default stream of every card has the same handle.
pub(crate) type StreamName = (i32, usize);

/// The most joins that a stream remembers. Forgetting the oldest makes work late, never early.
const MOST_JOINS: usize = 4096;

/// A point on a stream: everything launched there before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) stream: StreamName,
    /// By a count over all streams.
    tick: u64,
}

#[derive(Debug, Default)]
struct Line {
    /// The host has waited up to this tick …
    done: u64,
    /// … while this part of the script ran.
    part: u64,
    /// From this tick on its work comes after that point.
    joins: Vec<(u64, Point)>,
}

#[derive(Debug, Default)]
pub(crate) struct Order {
    now: u64,
    lines: BTreeMap<StreamName, Line>,
}

impl Order {
    /// Nothing was launched.
    pub(crate) const fn new() -> Order {
        Order { now: 0, lines: BTreeMap::new() }
    }

    /// Where the stream is.
    pub(crate) fn record(&mut self, stream: StreamName) -> Point {
        self.now += 1;
        self.lines.entry(stream).or_default();
        Point { stream, tick: self.now }
    }

    /// What follows on the stream comes after the point.
    pub(crate) fn join(&mut self, stream: StreamName, point: Point) {
        self.now += 1;
        if stream == point.stream || self.done_in(point).is_some() {
            return;
        }
        let joins = &mut self.lines.entry(stream).or_default().joins;
        if joins.len() == MOST_JOINS {
            joins.drain(..MOST_JOINS / 2);
        }
        joins.push((self.now, point));
    }

    /// The host waits for the point, and so for all that comes before it.
    pub(crate) fn wait(&mut self, point: Point, part: u64) {
        let mut points = vec![point];
        while let Some(Point { stream, tick }) = points.pop() {
            let line = self.lines.entry(stream).or_default();
            if line.done < tick {
                (line.done, line.part) = (tick, part);
            }
            let (before, after) = line.joins.iter().partition(|(joined, _)| *joined <= tick);
            line.joins = after;
            let before: Vec<(u64, Point)> = before;
            points.extend(before.into_iter().map(|(_, point)| point));
        }
    }

    /// The host waits for everything on the stream.
    pub(crate) fn wait_stream(&mut self, stream: StreamName, part: u64) {
        let point = self.record(stream);
        self.wait(point, part);
    }

    /// The host waits for everything on a card.
    pub(crate) fn wait_device(&mut self, device: i32, part: u64) {
        let now = self.now;
        let names: Vec<StreamName> = self.lines.keys().copied().collect();
        for stream in names.into_iter().filter(|(of, _)| *of == device) {
            self.wait(Point { stream, tick: now }, part);
        }
    }

    /// The part of the script in which the host waited for it; `None` if it may still run.
    pub(crate) fn done_in(&self, point: Point) -> Option<u64> {
        let line = self.lines.get(&point.stream)?;
        (point.tick <= line.done).then_some(line.part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: StreamName = (0, 0);
    const SIDE: StreamName = (0, 64);

    #[test]
    fn the_host_must_wait_for_work_to_be_sure_of_it() {
        let mut order = Order::new();
        let early = order.record(SIDE);
        assert_eq!(order.done_in(early), None);
        order.wait_stream(MAIN, 3);
        assert_eq!(order.done_in(early), None, "another stream says nothing");
        order.wait_stream(SIDE, 4);
        let only_recorded = order.record((0, 192));
        let late = order.record(SIDE);
        assert_eq!((order.done_in(early), order.done_in(late)), (Some(4), None));
        order.wait_device(1, 5);
        assert_eq!(order.done_in(late), None, "another card says nothing");
        order.wait_device(0, 6);
        assert_eq!((order.done_in(late), order.done_in(only_recorded)), (Some(6), Some(6)));
    }

    #[test]
    fn a_wait_is_handed_on_to_what_a_stream_waited_for() {
        let (mut order, third) = (Order::new(), (0, 128));
        let first = order.record(third);
        order.join(SIDE, first);
        let before = order.record(MAIN);
        let second = order.record(SIDE);
        order.join(MAIN, second);
        order.wait(before, 7);
        assert_eq!(order.done_in(second), None, "that was before the join");
        order.wait_stream(MAIN, 8);
        assert_eq!((order.done_in(second), order.done_in(first)), (Some(8), Some(8)));
    }

    #[test]
    fn many_joins_are_not_kept_for_ever() {
        let mut order = Order::new();
        for _ in 0..2 * MOST_JOINS {
            let point = order.record(SIDE);
            order.join(MAIN, point);
        }
        assert!(order.lines[&MAIN].joins.len() <= MOST_JOINS);
    }
}
