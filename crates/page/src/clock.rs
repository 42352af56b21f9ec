//! Ticks: allocations and frees that have happened. A recording's other events take none.

use anatomy::lives::{Lives, NEVER};

/// Gives the tick of a time.
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

    /// The tick of a time that may never come.
    pub(crate) fn end(&self, time: usize) -> Option<u32> {
        (time != NEVER).then(|| self.tick(time))
    }

    /// The last tick.
    pub(crate) fn last(&self) -> u32 {
        self.ticks[self.ticks.len() - 1]
    }
}
