//! The smallest card: how little memory a recording's requests can be met with.

use crate::packing::least_bytes;
use crate::replay::Requests;
use crate::settings::{MIB, Settings};

/// What segments are multiples of, unless the large ones are set to an odd number of MiB.
const STEP: u64 = 2 * MIB;

/// The least memory of a card, context included, on which every request is met; what was there before
/// the first event is laid out anew. `None` if even the memory of an endless card's peak does not do.
///
/// Found by halving, with a replay on a card of each size tried: it is met with this much, and not
/// with one byte less. Since caching depends on the room there is, a still smaller card may by chance
/// do where this one less a byte does not; none below the bytes in use can.
pub fn floor(requests: &Requests<'_>, settings: &Settings) -> Option<u64> {
    let endless = Settings { memory: None, ..settings.clone() };
    let peak = requests.replay_anew(&endless).stats.reserved_bytes.all.peak;
    let share = settings.memory_fraction.filter(|share| 0.0 < *share).unwrap_or(1.0);
    let step = if settings.large_segment_size.is_multiple_of(STEP) { STEP } else { MIB };
    let size = |steps: u64| settings.context + steps * step;
    let most = ((settings.context + peak) as f64 / share) as u64;
    let mut enough = most.saturating_sub(settings.context).div_ceil(step) + 1;
    if !fits(requests, settings, size(enough)) {
        return None;
    }
    let mut too_little = least_bytes(requests, settings).div_ceil(step).min(enough);
    if fits(requests, settings, size(too_little)) {
        return Some(size(too_little));
    }
    while too_little + 1 < enough {
        let middle = too_little + (enough - too_little) / 2;
        if fits(requests, settings, size(middle)) {
            enough = middle;
        } else {
            too_little = middle;
        }
    }
    Some(size(enough))
}

/// Is every request met on a card of this size?
pub fn fits(requests: &Requests<'_>, settings: &Settings, memory: u64) -> bool {
    let settings = Settings { memory: Some(memory), ..settings.clone() };
    requests.replay_anew(&settings).unmet(requests.events).is_none()
}
