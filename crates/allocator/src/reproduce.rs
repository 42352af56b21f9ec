//! Reproduction: a recording under its own settings. What its allocator did is not obeyed but
//! compared, event by event; only the card's answers are taken from it.

use std::cell::Cell;
use std::fmt;

use recording::{Event, Recording, Segment};

use crate::allocator::Allocator;
use crate::front::fronts;
use crate::recorded::{Recorded, is_release, is_segment};
use crate::replay::Player;
use crate::retry::{hold_back, is_retry};
use crate::rewind;
use crate::settings::Settings;
use crate::timeline::Timeline;

/// The first place where a replay is not what was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Index of the recording's event; the number of events if only the final blocks differ.
    pub event: usize,
    /// What was recorded.
    pub expected: String,
    /// What the replay did.
    pub got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "event {}: recorded `{}`, replayed `{}`", self.event, self.expected, self.got)
    }
}

/// A recording played again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reproduction {
    /// Up to the first difference.
    pub timeline: Timeline,
    /// `None` if everything is as recorded.
    pub difference: Option<Difference>,
}

thread_local! {
    static REPRODUCED: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread has played a recording again: tests hold each command to one replay a recording.
pub fn reproduced() -> u64 {
    REPRODUCED.get()
}

/// Replays a recording under the settings it was made with, and compares: every block's address,
/// every segment event and its order, and the final blocks if they are known.
pub fn reproduce(recording: &Recording, settings: &Settings) -> Reproduction {
    let mut result = reproduce_until(recording, settings, recording.events.len());
    if result.difference.is_none() && !recording.finish.is_empty() {
        let (events, got) = (recording.events.len(), &result.timeline.finish);
        result.difference = compare(events, &recording.finish, got);
    }
    result
}

/// The same for the events before `end`, and on to the next request if one was under way there.
pub(crate) fn reproduce_until(
    recording: &Recording,
    settings: &Settings,
    end: usize,
) -> Reproduction {
    REPRODUCED.set(REPRODUCED.get() + 1);
    let start = rewind::start(recording, settings);
    let source = Recorded::new(&recording.events, &start);
    let fronts = fronts(&start, &recording.events, settings);
    let (allocator, live) = Allocator::with_state_behind(settings, source, &start, &fronts);
    let mut player = Player::new(allocator, live, recording.events.len());
    let mut at = 0;
    while at < end && player.allocator.source.difference.is_none() {
        at = step(&mut player, &recording.events, at);
    }
    let difference = player.allocator.source.difference.take();
    Reproduction { timeline: player.timeline(start), difference }
}

/// Plays events on a card that answers as recorded.
pub(crate) type Replayer<'a> = Player<Recorded<'a>>;

/// Plays the events from `at` up to and with the next request or free; gives where to go on.
fn step(player: &mut Replayer<'_>, events: &[Event], at: usize) -> usize {
    let inside = |event: &&Event| {
        is_segment(event) || matches!(event, Event::FreeCompleted { .. } | Event::Mark(_))
    };
    let end = at + events[at..].iter().take_while(inside).count();
    let first = (at..end).find(|index| is_segment(&events[*index])).unwrap_or(end);
    player.allocator.source.open(first, end);
    let mut at = at;
    if at < first && completes_at_once(events, at) {
        play(player, events, at);
        at += 1;
    }
    if first == end || !events[first..end].iter().any(is_release) {
        (at..end).for_each(|index| play(player, events, index));
        return request(player, events, end);
    }
    // Segments of a private pool go only if no graph uses it, or for a request of its own.
    let own = events.get(end).and_then(pool_of);
    for event in events[first..end].iter().filter(|event| is_release(event)) {
        pool_of(event)
            .filter(|pool| Some(*pool) != own)
            .into_iter()
            .for_each(|pool| player.allocator.make_freeable(pool));
    }
    if is_release(&events[first]) && !is_retry(player, events, (at, end)) {
        (at..first).for_each(|index| play(player, events, index));
        player.allocator.empty_cache();
        player.note_segments(first);
        (first..end).for_each(|index| play(player, events, index));
        return request(player, events, end);
    }
    let held = hold_back(player, events, (at, end));
    for index in at..end {
        if held.contains(&index) {
            player.skip(&events[index]);
        } else {
            play(player, events, index);
        }
    }
    request(player, events, end)
}

fn pool_of(event: &Event) -> Option<(u32, u32)> {
    match event {
        Event::Alloc { pool, .. }
        | Event::OutOfMemory { pool, .. }
        | Event::SegmentFree { pool, .. }
        | Event::SegmentUnmap { pool, .. } => Some(*pool),
        _ => None,
    }
}

/// Does the free complete right after it was asked for, because no stream uses the block?
fn completes_at_once(events: &[Event], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| &events[before]);
    match (before, &events[at]) {
        (
            Some(Event::FreeRequested { address: asked, .. }),
            Event::FreeCompleted { address, .. },
        ) => asked == address,
        _ => false,
    }
}

/// The request or free that ends a group, and whether all of the group was replayed.
fn request(player: &mut Replayer<'_>, events: &[Event], at: usize) -> usize {
    if at < events.len() {
        play(player, events, at);
    }
    player.allocator.source.close();
    at + 1
}

fn play(player: &mut Replayer<'_>, events: &[Event], at: usize) {
    let outcome = player.play(at, &events[at]);
    let got = match (outcome, &events[at]) {
        (Err(error), _) => error.text,
        (Ok(moment), Event::Alloc { address, .. }) if moment.address != *address => {
            format!("alloc {:#x}", moment.address)
        }
        (Ok(_), Event::OutOfMemory { .. }) if player.was_rescued(at) => "a block".to_owned(),
        _ => return,
    };
    player.allocator.source.differ(at, got);
}

/// The first block that is not as in the snapshot's list.
fn compare(event: usize, expected: &[Segment], got: &[Segment]) -> Option<Difference> {
    let lines = |segments: &[Segment]| {
        let mut sorted: Vec<&Segment> = segments.iter().collect();
        sorted.sort_by_key(|segment| segment.address);
        let mut lines = Vec::new();
        for segment in sorted {
            lines.push(Segment { blocks: Vec::new(), ..segment.clone() }.to_string());
            lines.extend(segment.blocks.iter().map(|block| match block.state {
                // What an inactive block was last asked for means nothing.
                recording::BlockState::Inactive => {
                    format!("{:#x} {} inactive", block.address, block.size)
                }
                _ => block.to_string(),
            }));
        }
        lines
    };
    let (expected, got) = (lines(expected), lines(got));
    let length = expected.len().max(got.len());
    let line = |lines: &[String], index: usize| lines.get(index).cloned().unwrap_or_default();
    (0..length).find(|index| expected.get(*index) != got.get(*index)).map(|index| Difference {
        event,
        expected: line(&expected, index),
        got: line(&got, index),
    })
}
