//! Why a request failed, and which allocator settings would have met it: tried, not guessed.

use crate::fragments::{Cause, SettingsTrial, Shortage};
use allocator::fragments::{Fragments, Reason, Shortage as Found};
use allocator::{Requests, Settings, Timeline};
use recording::{Event, Recording};

use crate::pieces::pool_use;
use crate::settings_trials::{self, Candidate};

/// No card has an exabyte: a file that says so must not make sums overflow.
const MOST: u64 = 1 << 60;

/// Looks at the moment after an `oom` event; `None` if the event is none.
pub(crate) fn shortage(
    recording: &Recording,
    settings: &Settings,
    fragments: &Fragments,
    event: usize,
) -> Option<Shortage> {
    let Event::OutOfMemory { size, free, stream, pool } = *recording.events.get(event)? else {
        return None;
    };
    let (size, free) = (size.min(MOST), free.min(MOST));
    let found = Found::of(fragments, settings, (size, stream, pool), Some(free));
    let cause = cause(&found, free);
    let all_free = [found.own.free, found.other_streams.0, found.other_kind, found.other_pools];
    let all_free = all_free.iter().fold(free, |sum, bytes| sum.saturating_add(*bytes));
    let trials = match cause {
        // The card was not what refused it, so a replay on the card says nothing.
        Cause::Limit | Cause::LargerThanCard => Vec::new(),
        _ => trials(recording, settings, fragments, (event, free)),
    };
    Some(Shortage {
        cause,
        request_bytes: size,
        segment_bytes: found.segment,
        card_free_bytes: free,
        own: pool_use(&found.own),
        other_streams_free_bytes: found.other_streams.0,
        other_streams_largest_bytes: found.other_streams.1,
        other_kind_free_bytes: found.other_kind,
        other_pools_free_bytes: found.other_pools,
        missing_bytes: size.saturating_sub(all_free),
        trials,
    })
}

fn cause(found: &Found, card_free: u64) -> Cause {
    match found.reason {
        Reason::LargerThanCard => Cause::LargerThanCard,
        // Recordings do not always know of a limit, but a card with room refuses for no other reason.
        _ if found.segment <= card_free => Cause::Limit,
        Reason::Scattered => Cause::Scattered,
        Reason::OtherStream => Cause::OtherStream,
        Reason::Pending => Cause::Waiting,
        Reason::OtherPools => Cause::OtherPools,
        Reason::Limit => Cause::Limit,
        Reason::Full => Cause::Full,
    }
}

/// The same requests under other settings, on a card that has what PyTorch had reserved and what was
/// left. Empty if that card does not fail where the real one did: it would prove nothing.
fn trials(
    recording: &Recording,
    settings: &Settings,
    fragments: &Fragments,
    (event, free): (usize, u64),
) -> Vec<SettingsTrial> {
    let reserved = fragments.pools.iter().fold(free, |sum, row| sum.saturating_add(row.reserved));
    let card = Settings { memory: Some(reserved), context: 0, ..settings.clone() };
    let requests = Requests::of(recording, settings);
    let starts_empty = requests.start.is_empty();
    let is_met = |timeline: Timeline| timeline.rescued.contains(&event);
    // If laying out the start anew is enough by itself, no setting can be given the credit.
    if is_met(requests.replay(&card)) || (!starts_empty && is_met(requests.replay_anew(&card))) {
        return Vec::new();
    }
    let recorded = Candidate { conf: recording.about.allocator_settings.clone(), settings: card };
    let others = settings_trials::candidates(&recorded, None, true).into_iter().skip(1);
    // A limit of our own making is no remedy.
    let others = others.filter(|row| row.settings.memory_fraction.is_none());
    let tried = others.map(|row| SettingsTrial {
        met: is_met(requests.replay_anew(&row.settings)),
        settings: row.conf,
        modelled: !starts_empty,
    });
    tried.collect()
}
