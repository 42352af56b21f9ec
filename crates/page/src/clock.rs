//! Ticks: allocations and frees that have happened. A recording's other events take none.

use anatomy::lives::Lives;

/// Gives the tick of a time.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// For each time: how many allocations and frees had happened.
    ticks: Vec<u32>,
}

impl Clock {
    /// The clock of a recording with this many events.
    pub(crate) fn of(lives: &Lives, events: usize) -> Clock {
        let mut ticks = vec![0u32; events + 1];
        let mut changes = |time: usize| {
            if let Some(tick) = ticks.get_mut(time).filter(|_| time != 0) {
                *tick += 1;
            }
        };
        for life in &lives.list {
            changes(life.born);
            changes(life.freed);
        }
        let mut sum = 0;
        for tick in &mut ticks {
            sum += *tick;
            *tick = sum;
        }
        Clock { ticks }
    }

    /// The tick at a time: of an allocation or free its own, of anything else the one before it.
    pub(crate) fn tick(&self, time: usize) -> u32 {
        self.ticks[time.min(self.ticks.len() - 1)]
    }

    /// The first tick at which the event of a time has happened: what comes between two ticks is seen
    /// at the second, so that a tick shows the state right after its own allocation or free.
    pub(crate) fn seen(&self, time: usize) -> u32 {
        let is_change = time == 0 || self.tick(time - 1) < self.tick(time);
        self.tick(time) + u32::from(!is_change)
    }

    /// The last tick; one more than allocations and frees if something else comes after them.
    pub(crate) fn last(&self) -> u32 {
        self.seen(self.ticks.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use recording::text;

    use super::*;

    #[test]
    fn events_between_two_ticks_are_seen_at_the_second() {
        let program = "torch 2.15.0\nsegment_alloc 0x1000000 20971520\nalloc 0x1000000 4194304\n\
                       free_requested 0x1000000 4194304\nfree_completed 0x1000000 4194304";
        let recording = text::recording(program).unwrap();
        let settings = allocator::Settings::of(&recording.about).unwrap();
        let timeline = allocator::reproduce(&recording, &settings).timeline;
        let clock = Clock::of(&Lives::of(&recording, &timeline), timeline.moments.len());
        let ticks = |of: fn(&Clock, usize) -> u32| [0, 1, 2, 3, 4].map(|time| of(&clock, time));
        assert_eq!(ticks(Clock::tick), [0, 0, 1, 2, 2]);
        assert_eq!(ticks(Clock::seen), [0, 1, 1, 2, 3]);
        assert_eq!(clock.last(), 3);
    }
}
