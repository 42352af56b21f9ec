//! Why a recording gave memory back: for a request that had no room, or by `empty_cache`. Neither
//! leaves an event of its own, so the request is tried both ways and compared with what was recorded.

use recording::Event;

use crate::pool::PoolId;
use crate::recorded::{is_release, is_segment};
use crate::reproduce::Replayer;
use crate::settings::{SMALL_SIZE, UNLIMITED};

/// Was memory given back because the request at the end of the group had no room? Not if it could
/// have had a free block. If no new segment follows, `empty_cache` was called, unless only a retry
/// explains the block, or both do and the card was full.
pub(crate) fn is_retry(player: &mut Replayer<'_>, events: &[Event], group: (usize, usize)) -> bool {
    let (at, end) = group;
    let makes = |event: &Event| is_segment(event) && !is_release(event);
    let Some(Asked { size, stream, pool, place }) = events.get(end).and_then(asked) else {
        return false;
    };
    let rounded = player.allocator.settings.round(size);
    if player.allocator.would_find(rounded, stream, pool) {
        return false;
    }
    let by_request = || {
        tried(player, events, group, Before::Frees) || tried(player, events, group, Before::Nothing)
    };
    let settings = &player.allocator.settings;
    if place.is_some() && !events[at..end].iter().any(makes) {
        // `release_cached_blocks` unmaps whole pages. What is left of a block in front of them can
        // be large enough, and the retry takes the lowest such part without another page. The
        // search after a call of `empty_cache` prefers blocks that cannot grow.
        return settings.expands(pool)
            && by_request()
            && (is_full(player, rounded) || !tried(player, events, group, Before::Call));
    }
    // Emptied before or by the request comes to the same, unless other rules give back too.
    let plain = settings.retries(pool)
        && !settings.collects_garbage()
        && settings.max_split_size == UNLIMITED;
    plain || by_request()
}

/// Could the card not give one page more? Not known, hence false, if its size is not known.
fn is_full(player: &Replayer<'_>, size: u64) -> bool {
    let (settings, reserved) = (&player.allocator.settings, player.allocator.reserved());
    let lacks = |room: Option<u64>, more: u64| room.is_some_and(|room| room < reserved + more);
    lacks(settings.limit(), settings.segment_size(size))
        || lacks(settings.usable(), settings.page(SMALL_SIZE < size))
}

/// A recorded request.
struct Asked {
    size: u64,
    stream: u64,
    pool: PoolId,
    /// Where its block was, if it got one.
    place: Option<u64>,
}

/// The request that an event is about.
fn asked(event: &Event) -> Option<Asked> {
    match *event {
        Event::Alloc { size, stream, pool, address, .. } => {
            Some(Asked { size, stream, pool, place: Some(address) })
        }
        Event::OutOfMemory { size, stream, pool, .. } => {
            Some(Asked { size, stream, pool, place: None })
        }
        _ => None,
    }
}

/// What may have come before the search of the request at the end of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing: the group's frees completed while the request waited for all streams.
    Nothing,
    /// The group's frees.
    Frees,
    /// The group's frees and a call of `empty_cache`.
    Call,
}

/// Does the request at the end of the group do what was recorded, if this came before its search?
fn tried(
    player: &Replayer<'_>,
    events: &[Event],
    (at, end): (usize, usize),
    before: Before,
) -> bool {
    let Some(Asked { size, stream, pool, place }) = events.get(end).and_then(asked) else {
        return false;
    };
    let mut trial = player.allocator.clone();
    let free = |event: &Event| before != Before::Nothing && !is_segment(event);
    for event in events[at..end].iter().take_while(|event| free(event)) {
        if let Event::FreeCompleted { address, .. } = event
            && let Some(handle) = player.live(*address)
        {
            trial.complete_free(handle);
        }
    }
    if before == Before::Call {
        trial.empty_cache();
    }
    let got = trial.malloc(size, stream, pool).ok().map(|handle| trial.block(handle).0);
    trial.source.close();
    trial.source.difference.is_none() && got == place
}

/// Frees that complete because the request waits for all streams, which is after its search. Others
/// completed before it, as all did if that explains what was recorded.
pub(crate) fn hold_back(
    player: &Replayer<'_>,
    events: &[Event],
    (at, end): (usize, usize),
) -> Vec<usize> {
    let mut waiting = Vec::new();
    for (index, event) in events.iter().enumerate().take(end).skip(at) {
        if let Event::FreeCompleted { address, .. } = event
            && let Some(handle) = player.live(*address)
        {
            waiting.push((index, handle));
        }
    }
    if !waiting.is_empty() && tried(player, events, (at, end), Before::Frees) {
        return Vec::new();
    }
    if !waiting.is_empty() {
        let mut trial = player.allocator.clone();
        let Some(Asked { size, stream, pool, .. }) = events.get(end).and_then(asked) else {
            return Vec::new();
        };
        drop(trial.malloc(size, stream, pool));
        trial.source.close();
        if trial.source.difference.is_some() {
            return Vec::new();
        }
        waiting.retain(|(_, handle)| !trial.is_pending(*handle));
    }
    waiting.into_iter().map(|(index, _)| index).collect()
}
