//! Memory that grows with every step: how long it lasts.

use crate::run::Run;
use crate::whole::WholeCame;

/// Steps that a training may have. What fills the card only after these does not decide, as a number that is kept of each
/// step.
const MANY_STEPS: u64 = 100_000;

impl Run {
    /// What every further step leaves on the card, of a training that goes on; 0 if nothing does.
    pub fn grows_bytes(&self) -> u64 {
        let goes_on = self.stopped || self.whole.as_ref().is_some_and(|whole| whole.is_reported);
        // A longer run that needed no more shows that it ends.
        let has_ended = self.whole.as_ref().is_some_and(|whole| {
            whole.came == WholeCame::Through && !whole.is_reported && self.steps < whole.steps
        });
        match self.anatomy() {
            Some(anatomy) if goes_on && !has_ended => anatomy.growth.bytes_per_step,
            _ => 0,
        }
    }

    /// Whether it becomes more than the run needs now, in a training of many steps.
    pub fn grows_much(&self) -> bool {
        let need = self.needed().map_or(0, |need| need.bytes);
        need < self.grows_bytes().saturating_mul(MANY_STEPS)
    }

    /// Steps after which it takes all the room there is, if a training may have so many.
    pub fn full_after(&self) -> Option<u64> {
        let need = self.needed()?.bytes;
        let free = self.room_bytes()?.checked_sub(need)?;
        let steps = self.steps + free.checked_div(self.grows_bytes())?;
        (steps < MANY_STEPS).then_some(steps)
    }
}
