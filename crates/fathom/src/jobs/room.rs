//! Whether one more job may start: a question of numbers alone.
//!
//! A job is expected to take what the largest of this command has taken, and a quarter more; before one has
//! ended, what is assumed. Of the memory that is available, what those that run may still grow by is spoken for.

use std::collections::BTreeMap;

/// What a job is taken to need until one has ended: Python, torch, a model on the host and some data.
pub(crate) const ASSUMED: u64 = 2 << 30;

/// Nothing that imports torch takes less; one that failed at once says nothing of the others.
const LEAST: u64 = 512 << 20;

/// What one process of the system or several hold of the host's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) now: u64,
    pub(crate) most: u64,
}

/// The jobs that run, and what is known of their memory.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    /// Jobs at once, if there is memory for them.
    at_once: usize,
    running: BTreeMap<usize, Held>,
    /// The most that a job of this command was seen to hold.
    largest: u64,
    /// Whether one that was seen has ended.
    has_ended: bool,
}

impl Room {
    pub(crate) fn new(at_once: usize) -> Room {
        Room { at_once, running: BTreeMap::new(), largest: 0, has_ended: false }
    }

    /// Whether one more may start with so many bytes available; `None` if nobody knows. One always may.
    pub(crate) fn may_start(&self, available: Option<u64>) -> bool {
        if self.running.is_empty() {
            return true;
        }
        let growth = |held: &Held| self.expected().saturating_sub(held.now);
        let spoken_for: u64 = self.running.values().map(growth).sum();
        let is_enough = |bytes: u64| self.expected().saturating_add(spoken_for) <= bytes;
        self.running.len() < self.at_once && available.is_none_or(is_enough)
    }

    /// Bytes that the next job is taken to need.
    fn expected(&self) -> u64 {
        let with_a_quarter = self.largest.saturating_add(self.largest / 4);
        with_a_quarter.max(if self.has_ended { LEAST } else { ASSUMED })
    }

    pub(crate) fn start(&mut self, job: usize) {
        self.running.insert(job, Held::default());
    }

    /// What a running job holds.
    pub(crate) fn see(&mut self, job: usize, held: Held) {
        self.largest = self.largest.max(held.most);
        // Of one that has just ended nothing is left to be seen.
        let seen = |of: &mut Held| *of = Held { now: held.now, most: of.most.max(held.most) };
        self.running.entry(job).and_modify(seen);
    }

    pub(crate) fn end(&mut self, job: usize) {
        let held = self.running.remove(&job);
        self.has_ended |= held.is_some_and(|held| held.most != 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn holding(now: u64, most: u64) -> Held {
        Held { now: now * GIB, most: most * GIB }
    }

    /// As many as may start at once when so much is available and nothing is seen of them.
    fn count(room: &Room, available: u64) -> usize {
        let mut room = room.clone();
        let mut job = 100;
        while room.may_start(Some(available)) {
            room.start(job);
            job += 1;
        }
        job - 100
    }

    #[test]
    fn as_many_as_there_are_cores() {
        let mut room = Room::new(3);
        for job in 0..3 {
            assert!(room.may_start(Some(100 * GIB)) && room.may_start(None));
            room.start(job);
        }
        assert!(!room.may_start(Some(100 * GIB)) && !room.may_start(None));
        room.end(1);
        assert!(room.may_start(None));
    }

    #[test]
    fn one_always_runs_and_a_second_needs_memory() {
        let mut room = Room::new(8);
        assert!(room.may_start(Some(0)));
        room.start(0);
        assert!(!room.may_start(Some(0)) && !room.may_start(Some(2 * ASSUMED - 1)));
        assert!(room.may_start(Some(2 * ASSUMED)), "the first has not taken its part yet");
        room.see(0, Held { now: ASSUMED, most: ASSUMED });
        assert!(!room.may_start(Some(ASSUMED)), "it holds what was assumed: more is expected");
        assert!(room.may_start(Some(2 * ASSUMED)));
    }

    #[test]
    fn what_was_seen_replaces_what_was_assumed() {
        let mut room = Room::new(100);
        assert_eq!(count(&room, 20 * GIB), 10);
        room.start(0);
        room.see(0, holding(1, 1));
        assert_eq!(count(&room, 20 * GIB), 9, "it may still grow by a GiB: nothing has ended");
        room.end(0);
        assert_eq!(count(&room, 20 * GIB), 16, "20 GiB / 1.25 GiB");
        room.start(1);
        room.see(1, holding(4, 8));
        assert_eq!(count(&room, 20 * GIB), 1, "10 GiB each, of which 6 GiB are spoken for");
        room.end(1);
        assert_eq!(count(&room, 20 * GIB), 2);
        assert_eq!(count(&room, 0), 1);
    }

    #[test]
    fn a_job_that_was_never_seen_or_failed_at_once_teaches_nothing() {
        let mut room = Room::new(100);
        room.start(0);
        room.end(0);
        assert_eq!(count(&room, 20 * GIB), 10, "still what is assumed");
        room.start(1);
        room.see(1, Held { now: 1 << 20, most: 1 << 20 });
        room.end(1);
        assert_eq!(count(&room, 20 * GIB), 40, "no less than Python with torch");
    }
}
