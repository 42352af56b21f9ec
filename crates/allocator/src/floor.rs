//! The smallest card: how little memory a recording's requests can be met with.

use crate::on_card::Start;
use crate::packing::least_bytes;
use crate::replay::Requests;
use crate::settings::{MIB, Settings};

/// What segments are multiples of, unless the large ones are set to an odd number of MiB.
const STEP: u64 = 2 * MIB;

/// So many steps more must do too.
const SURE: u64 = 8;

/// The least memory of a card, context included, on which every request is met. `None` if even the
/// memory of an endless card's peak does not do.
///
/// Found by halving, with a replay on a card of each size tried: it is met with this much and with a few
/// steps more, and not with one byte less. Since caching depends on the room there is, a still smaller
/// card may by chance do where this one less a byte does not; none below the bytes in use can.
pub fn floor(requests: &Requests<'_>, settings: &Settings, start: Start) -> Option<u64> {
    let endless = Settings { memory: None, ..settings.clone() };
    let endless = requests.replay_on_card(&endless, start).timeline;
    let peak = endless.stats.reserved_bytes.all.peak;
    let share = settings.memory_fraction.filter(|share| 0.0 < *share).unwrap_or(1.0);
    let step = step(requests, settings);
    let size = |steps: u64| settings.context + steps * step;
    let most = ((settings.context + peak) as f64 / share) as u64;
    let does = |steps: u64| fits(requests, settings, size(steps), start);
    let top = most.saturating_sub(settings.context).div_ceil(step) + 1;
    if !does(top) {
        return None;
    }
    let least = least_bytes(requests, settings).div_ceil(step).min(top);
    if least == 0 && does(0) {
        return Some(size(0));
    }
    // With a step less, there is not even room for what is in use.
    let mut enough = halve(least.saturating_sub(1), top, does);
    // A size that does by chance, where a larger one does not, is not the answer.
    let mut at = enough;
    while at < top.min(enough + SURE) {
        at += 1;
        if !does(at) {
            enough = at + 1;
        }
    }
    match has_steps(settings) || enough == 0 {
        true => Some(size(enough)),
        false => Some(halve(size(enough - 1), size(enough), |memory| {
            fits(requests, settings, memory, start)
        })),
    }
}

/// Somewhere between a size that does not do and one that does: a size that does, and the one before it
/// does not.
fn halve(mut too_little: u64, mut enough: u64, does: impl Fn(u64) -> bool) -> u64 {
    while too_little + 1 < enough {
        let middle = too_little + (enough - too_little) / 2;
        if does(middle) {
            enough = middle;
        } else {
            too_little = middle;
        }
    }
    enough
}

/// Is every request met on a card of this size?
pub fn fits(requests: &Requests<'_>, settings: &Settings, memory: u64, start: Start) -> bool {
    let settings = Settings { memory: Some(memory), ..settings.clone() };
    requests.replay_on_card(&settings, start).timeline.unmet(requests.events).is_none()
}

/// Do only whole steps make a difference? A fraction of the card, and the addresses that an expandable
/// segment reserves by the card's size, make every byte count.
fn has_steps(settings: &Settings) -> bool {
    settings.memory_fraction.is_none() && !settings.expandable_segments
}

/// What all sums of segments are multiples of.
fn step(requests: &Requests<'_>, settings: &Settings) -> u64 {
    let sizes = requests.start.iter().map(|segment| segment.size);
    let bits = sizes.fold(settings.large_segment_size | STEP, |bits, size| bits | size);
    1 << bits.trailing_zeros()
}
