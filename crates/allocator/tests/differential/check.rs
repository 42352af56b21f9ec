//! One program through all comparisons.

use std::collections::BTreeMap;
use std::fmt;

use addresses::Addresses;
use allocator::{TieBreak, Timeline, UNLIMITED, replay, reproduce, validate};
use recording::{Event, Recording};

use crate::compare;
use crate::program::Program;
use crate::server::Server;
use crate::simulate::{Simulation, simulate};

/// How many programs went through which comparison.
#[derive(Default)]
pub(crate) struct Tally {
    programs: usize,
    reproduced: usize,
    replayed: usize,
    requests: usize,
    failures: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { programs, reproduced, replayed, requests, failures } = self;
        write!(
            to,
            "{programs} programs agree ({reproduced} as recordings, {replayed} of them replayed), \
             {requests} requests, {failures} out of memory"
        )
    }
}

/// Runs a program on both sides; the first difference, in words.
pub(crate) fn check(
    server: &mut Server,
    program: &Program,
    tally: &mut Tally,
) -> Result<(), String> {
    let answer = server.run(program)?;
    let ours = simulate(program, server, &answer);
    let names_pools = (2, 12) <= ours.settings.version;
    let theirs = &answer.recording;
    let places = compare::events(&ours.events, &theirs.events, names_pools)?;
    compare::states(&ours.finish, &theirs.finish, &places)?;
    compare::stats(&ours.stats, &answer.stats, ours.not_known(false))?;
    tally.programs += 1;
    let count = |wanted: fn(&Event) -> bool| theirs.events.iter().filter(|e| wanted(e)).count();
    tally.requests += count(|event| matches!(event, Event::Alloc { .. }));
    tally.failures += count(|event| matches!(event, Event::OutOfMemory { .. }));
    // A recording has one settings text, and refusals leave no event.
    if !program.keeps_settings() || ours.stats.num_oom_rejections != 0 {
        return Ok(());
    }
    let mut recording = with_pools(theirs, &ours.events);
    // What PyTorch cannot have: also what lies above its limit.
    let limit = ours.settings.limit().unwrap_or(answer.total).min(answer.free);
    recording.about.context_bytes = answer.total - limit;
    recording.about.allocator_settings = program.first_settings();
    reproduced(&recording, &ours, &answer.stats).map_err(|why| format!("reproduce: {why}"))?;
    tally.reproduced += 1;
    from_the_middle(&recording, &ours).map_err(|why| format!("from the middle: {why}"))?;
    let was = replayed(&recording, &ours, &answer.stats).map_err(|why| format!("replay: {why}"))?;
    tally.replayed += usize::from(was);
    Ok(())
}

/// PyTorch's events with the pools that traces do not name before 2.12; both lists are the same.
fn with_pools(theirs: &Recording, ours: &[Event]) -> Recording {
    let mut recording = theirs.clone();
    let named = |event: &Event| match event {
        Event::Alloc { pool, .. }
        | Event::SegmentAlloc { pool, .. }
        | Event::SegmentFree { pool, .. }
        | Event::SegmentMap { pool, .. }
        | Event::SegmentUnmap { pool, .. }
        | Event::OutOfMemory { pool, .. } => Some(*pool),
        _ => None,
    };
    let mut pools = ours.iter().filter_map(named);
    for event in &mut recording.events {
        if let Event::Alloc { pool, .. }
        | Event::SegmentAlloc { pool, .. }
        | Event::SegmentFree { pool, .. }
        | Event::SegmentMap { pool, .. }
        | Event::SegmentUnmap { pool, .. }
        | Event::OutOfMemory { pool, .. } = event
        {
            *pool = pools.next().expect("as many as PyTorch's");
        }
    }
    recording
}

type Theirs = std::collections::BTreeMap<String, u64>;

/// Counters of calls that need not leave an event.
const WITHOUT_EVENTS: &[&str] = &["num_sync_all_streams", "num_alloc_retries"];
/// What depends on the order of frees that complete together: the way to where they are is another.
const ORDERED: &[&str] = &["inactive_split"];
const BOTH: &[&str] = &["num_sync_all_streams", "num_alloc_retries", "inactive_split"];

impl Simulation {
    /// Are there oversize blocks of which pages can be unmapped? Then a retry and a call of
    /// `empty_cache` can lead to different blocks.
    fn leaves_oversize_pages(&self) -> bool {
        self.settings.expandable_segments && self.settings.max_split_size != UNLIMITED
    }

    /// Statistics that cannot be compared; a recording `hides_calls` if there were any.
    fn not_known(&self, hides_calls: bool) -> &'static [&'static str] {
        match (hides_calls, self.shuffled) {
            (false, false) => &[],
            (true, false) => WITHOUT_EVENTS,
            (false, true) => ORDERED,
            (true, true) => BOTH,
        }
    }
}

fn reproduced(recording: &Recording, ours: &Simulation, stats: &Theirs) -> Result<(), String> {
    let result = reproduce(recording, &ours.settings);
    if let Some(difference) = result.difference {
        return Err(difference.to_string());
    }
    validate::validate(recording, &result.timeline)?;
    compare::stats(&result.timeline.stats, stats, ours.not_known(!ours.emptied.is_empty()))
}

/// The second half of a recording: what was there before follows from its end. Known for expandable
/// segments only, where the order of equal blocks does not hang on when their segments were made.
fn from_the_middle(recording: &Recording, ours: &Simulation) -> Result<(), String> {
    if !ours.settings.expandable_segments || ours.settings.collects_garbage() {
        return Ok(());
    }
    let events = &recording.events;
    let cut = |event: &Event| matches!(event, Event::Alloc { .. });
    let Some(at) = (0..events.len() / 2).rev().find(|at| cut(&events[*at])) else { return Ok(()) };
    let tail = Recording { events: events[at + 1..].to_vec(), ..recording.clone() };
    let result = reproduce(&tail, &ours.settings);
    validate::validate(&tail, &result.timeline)?;
    result.difference.map_or(Ok(()), |difference| Err(difference.to_string()))
}

/// The recording on a card of our own. False if its history does not say enough.
fn replayed(recording: &Recording, ours: &Simulation, stats: &Theirs) -> Result<bool, String> {
    let timeline = replay(recording, &ours.settings);
    validate::validate(recording, &timeline)?;
    if !says_enough(recording, ours) {
        return Ok(false);
    }
    let places = compare::events(&history(recording, &timeline), &recording.events, true)?;
    compare::states(&timeline.finish, &recording.finish, &places)?;
    // The limit is asked about whole segments, which pages do not show: what was a retry looks like
    // a call of `empty_cache` then, with the same result.
    let hides_calls = ours.settings.expandable_segments || !ours.emptied.is_empty();
    compare::stats(&timeline.stats, stats, ours.not_known(hides_calls))?;
    Ok(true)
}

/// Can a history be replayed on another card with the same result? Not if blocks of equal size were
/// chosen by addresses that our card gives otherwise.
fn says_enough(recording: &Recording, ours: &Simulation) -> bool {
    let by_address = ours.settings.tie_break == TieBreak::Address;
    (!by_address || is_in_our_order(recording))
        && !hides_the_limit(recording, ours)
        && !ours.emptied.iter().any(|call| hides(recording, ours, *call))
}

/// Do the segments lie as a card of our own would put them, one below the other? The phantom has more in its
/// address space than this process's segments.
fn is_in_our_order(recording: &Recording) -> bool {
    let mut card = Addresses::new(0, 1 << 46);
    // By their addresses in the recording: ours.
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    recording.events.iter().all(|event| match *event {
        Event::SegmentAlloc { address, size, .. } => {
            let place = card.take(size).expect("more addresses than a card has bytes");
            let below = live.range(..address).next_back().is_none_or(|(_, other)| *other < place);
            let above = live.range(address..).next().is_none_or(|(_, other)| place < *other);
            live.insert(address, place);
            below && above
        }
        Event::SegmentFree { address, size, .. } => {
            if let Some(place) = live.remove(&address) {
                card.give_back(place, size);
            }
            true
        }
        _ => true,
    })
}

/// Does a call of `empty_cache` look like a request that had no room, or like garbage collection?
fn hides(recording: &Recording, ours: &Simulation, call: usize) -> bool {
    let reserved: i64 = ours.events[..call].iter().map(change).sum();
    let group = ours.events[call..].iter();
    let group = group.take_while(|event| !matches!(event, Event::Alloc { .. }));
    let taken: i64 = group.map(|event| change(event).max(0)).sum();
    let usable = usable(recording);
    // Nothing taken: the request may have got what unmapping left of an oversize block.
    if taken == 0 {
        let page = ours.settings.large_segment_size as i64;
        return ours.leaves_oversize_pages() && usable < reserved + page;
    }
    ours.settings.collects_garbage() || usable < reserved + taken
}

/// Does a request that had no room look like a call of `empty_cache`? The limit is asked about whole
/// segments. Once pages went beyond it, more looks possible than is.
fn hides_the_limit(recording: &Recording, ours: &Simulation) -> bool {
    let mut reserved = 0;
    let peak = recording.events.iter().map(|event| {
        reserved += change(event);
        reserved
    });
    ours.leaves_oversize_pages() && usable(recording) < peak.max().unwrap_or(0)
}

fn usable(recording: &Recording) -> i64 {
    (recording.about.memory_bytes - recording.about.context_bytes) as i64
}

/// Bytes by which an event changes what is reserved.
fn change(event: &Event) -> i64 {
    match event {
        Event::SegmentAlloc { size, .. } | Event::SegmentMap { size, .. } => *size as i64,
        Event::SegmentFree { size, .. } | Event::SegmentUnmap { size, .. } => -(*size as i64),
        _ => 0,
    }
}

/// The trace a replay would have left.
fn history(recording: &Recording, timeline: &Timeline) -> Vec<Event> {
    let mut segments = timeline.segments.iter().peekable();
    let mut events = Vec::new();
    for (at, (event, moment)) in recording.events.iter().zip(&timeline.moments).enumerate() {
        while let Some(segment) = segments.next_if(|segment| segment.at == at) {
            events.push(segment.event);
        }
        let mut event = *event;
        match &mut event {
            Event::Alloc { address, .. }
            | Event::FreeRequested { address, .. }
            | Event::FreeCompleted { address, .. } => *address = moment.address,
            Event::OutOfMemory { .. } => {}
            _ => continue,
        }
        events.push(event);
    }
    events.extend(segments.map(|segment| segment.event));
    events
}
