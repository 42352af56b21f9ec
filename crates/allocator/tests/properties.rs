//! Laws that hold for every program, tried on random ones. A failing program is printed in text form.

use allocator::{
    Outcome, Requests, Settings, Start, fits, floor, pack, replay, reproduce, validate,
};
use proptest::prelude::*;
use recording::{Event, OwnerId, Recording, text};

const MIB: u64 = 1 << 20;

#[derive(Clone, Debug)]
enum Step {
    Alloc { size: u64, stream: u64, pool: u32 },
    Free { which: usize, waits: bool },
    Empty,
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![1..65_536u64, 65_536..MIB, MIB..10 * MIB, 10 * MIB..80 * MIB, Just(MIB)];
    let alloc = (size, 0..3u64, prop_oneof![4 => Just(0), 1 => Just(1u32)])
        .prop_map(|(size, stream, pool)| Step::Alloc { size, stream, pool });
    let free = (any::<usize>(), prop::bool::weighted(0.2))
        .prop_map(|(which, waits)| Step::Free { which, waits });
    prop_oneof![5 => alloc, 4 => free, 1 => Just(Step::Empty)]
}

fn settings() -> impl Strategy<Value = Settings> {
    let version = prop::sample::select(vec!["2.1", "2.6", "2.9", "2.12", "2.13", "2.15"]);
    let conf = prop::sample::select(vec![
        "",
        "expandable_segments:True",
        "max_split_size_mb:32",
        "roundup_power2_divisions:4",
        "garbage_collection_threshold:0.6",
        "garbage_collection_threshold:0.6,max_split_size_mb:64,expandable_segments:True",
    ]);
    let memory = prop::option::of((100..1000u64).prop_map(|memory| memory * MIB));
    let fraction = prop::option::of(0.3..1.0f64);
    (version, conf, memory, fraction).prop_map(|(version, conf, memory, memory_fraction)| {
        let settings = Settings::for_torch(version).unwrap().with_conf(conf).unwrap();
        Settings { memory, memory_fraction, ..settings }
    })
}

/// A program as a recording; everything is freed at the end if `ends`.
fn recording(steps: &[Step], ends: bool) -> Recording {
    let mut events = Vec::new();
    let mut live: Vec<(u64, u64)> = Vec::new();
    let mut waiting: Vec<(u64, u64)> = Vec::new();
    let mut next = 0;
    for step in steps {
        match *step {
            Step::Alloc { size, stream, pool } => {
                next += 512;
                let (owner, pool) = (OwnerId(0), (0, pool));
                events.push(Event::Alloc { address: next, size, stream, owner, pool });
                live.push((next, size));
            }
            Step::Free { which, waits } if !live.is_empty() => {
                let (address, size) = live.swap_remove(which % live.len());
                events.push(Event::FreeRequested { address, size });
                if waits {
                    waiting.push((address, size));
                } else {
                    events.push(Event::FreeCompleted { address, size });
                }
            }
            Step::Free { .. } => {}
            Step::Empty => {
                events.push(Event::SegmentFree { address: 0, size: 0, stream: 0, pool: (0, 0) });
            }
        }
    }
    if ends {
        for (address, size) in live {
            events.push(Event::FreeRequested { address, size });
            waiting.push((address, size));
        }
        let done = waiting.into_iter();
        events.extend(done.map(|(address, size)| Event::FreeCompleted { address, size }));
    }
    Recording { events, ..Recording::default() }
}

/// What a recorder would have written of a replay: with its segment events and its addresses.
fn as_recorded(plain: &Recording, settings: &Settings) -> Recording {
    let timeline = replay(plain, settings);
    let mut segments = timeline.segments.iter().peekable();
    let mut recorded = Recording { finish: timeline.finish.clone(), ..Recording::default() };
    for (at, moment) in timeline.moments.iter().enumerate() {
        while let Some(segment) = segments.next_if(|segment| segment.at == at) {
            recorded.events.push(segment.event);
        }
        let mut event = plain.events[at];
        match &mut event {
            Event::Alloc { address, .. }
            | Event::FreeRequested { address, .. }
            | Event::FreeCompleted { address, .. } => *address = moment.address,
            _ => continue,
        }
        recorded.events.push(event);
    }
    recorded.events.extend(segments.map(|segment| segment.event));
    if let Outcome::OutOfMemory { at, error } = timeline.outcome
        && let Event::Alloc { stream, pool, .. } = plain.events[at]
    {
        let (size, free) = (error.size, error.free.unwrap_or(0));
        recorded.events.push(Event::OutOfMemory { size, free, stream, pool });
    }
    recorded
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_replay_is_valid_and_the_same_twice(
        steps in prop::collection::vec(step(), 1..200),
        settings in settings(),
    ) {
        let recording = recording(&steps, true);
        let timeline = replay(&recording, &settings);
        let shown = || format!("{settings:?}\n{}", text::write(&recording));
        prop_assert_eq!(validate::validate(&recording, &timeline), Ok(()), "{}", shown());
        prop_assert_eq!(&replay(&recording, &settings), &timeline, "{}", shown());
        let greatest = timeline.moments.iter().map(|moment| moment.allocated).max().unwrap_or(0);
        prop_assert_eq!(timeline.stats.allocated_bytes.all.peak, greatest);
        if timeline.outcome == Outcome::Completed {
            prop_assert_eq!(timeline.stats.active_bytes.all.current, 0, "{}", shown());
            prop_assert_eq!(timeline.stats.requested_bytes.all.current, 0);
            prop_assert_eq!(timeline.stats.inactive_split.all.current, 0);
        }
    }

    #[test]
    fn what_was_recorded_is_reproduced_from_any_point(
        steps in prop::collection::vec(step(), 1..150),
        settings in settings(),
        from in any::<prop::sample::Index>(),
    ) {
        // Waiting blocks that a retry frees leave no event here, so none wait.
        let calm: Vec<Step> = steps.iter().cloned().map(|step| match step {
            Step::Free { which, .. } => Step::Free { which, waits: false },
            other => other,
        }).collect();
        let recorded = as_recorded(&recording(&calm, false), &settings);
        let result = reproduce(&recorded, &settings);
        prop_assert_eq!(result.difference, None, "{:?}\n{}", settings, text::write(&recorded));
        // A trace of which only the end is left: the start follows from the final blocks.
        if settings.tie_break == allocator::TieBreak::Address && !settings.collects_garbage()
            && settings.roundup_power2_divisions == [0; 16] && !recorded.events.is_empty()
            && settings.max_split_size == allocator::UNLIMITED && !settings.expandable_segments
        {
            let at = from.index(recorded.events.len());
            let is_alloc = |event: &Event| matches!(event, Event::Alloc { .. } | Event::FreeCompleted { .. });
            let at = (0..=at).rev().find(|at| is_alloc(&recorded.events[*at])).map_or(0, |at| at + 1);
            let tail = Recording { events: recorded.events[at..].to_vec(), ..recorded.clone() };
            let result = reproduce(&tail, &settings);
            prop_assert_eq!(result.difference, None, "{:?}\n{}", settings, text::write(&tail));
            prop_assert_eq!(validate::validate(&tail, &result.timeline), Ok(()), "{}", text::write(&tail));
        }
    }

    #[test]
    fn the_smallest_card_does_and_one_byte_less_does_not(
        steps in prop::collection::vec(step(), 1..120),
        settings in settings(),
        from in any::<prop::sample::Index>(),
    ) {
        let made = Settings { memory: None, memory_fraction: None, ..settings.clone() };
        let whole = as_recorded(&recording(&steps, false), &made);
        let at = if whole.events.is_empty() { 0 } else { from.index(whole.events.len()) };
        let tail = Recording { events: whole.events[at..].to_vec(), ..whole };
        let requests = Requests::of(&tail, &made);
        let packing = pack(&requests, &settings);
        prop_assert!(packing.bound <= packing.packed);
        for start in [Start::Kept, Start::Anew] {
            let Some(least) = floor(&requests, &settings, start) else { continue };
            let shown = || format!("{start:?} {least} {settings:?}\n{}", text::write(&tail));
            prop_assert!(fits(&requests, &settings, least, start), "{}", shown());
            let below = least.checked_sub(1).is_some_and(|below| fits(&requests, &settings, below, start));
            prop_assert!(!below, "{}", shown());
            prop_assert!(packing.bound <= least, "{}", shown());
        }
    }
}
