//! Which pass or step runs at each event, by what ran there and by named regions.

use std::collections::HashSet;

use recording::{Event, Phase, Recording, StackId, TextId};
use snapshot::Clues;

use crate::lives::Life;
use crate::reading::Reading;

/// How PyTorch names the region of an optimizer's step: `Optimizer.step#AdamW.step`.
const STEP: &str = "Optimizer.step";

/// What runs at an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// `None` before anything is known.
    pub(crate) phase: Option<Phase>,
    /// Optimizer steps before this one, plus one.
    pub(crate) step: u32,
    /// Number of the pass: another one begins with every change of the phase.
    pub(crate) pass: u32,
}

/// What runs at each event of a recording.
pub(crate) fn phases(
    recording: &Recording,
    clues: &Clues,
    readings: &[Reading],
    lives: &[Life],
) -> Vec<Now> {
    let is_new = begins(recording, lives);
    let seen = Seen::of(recording, clues, readings);
    let first = is_new.then_some(Phase::Construction);
    let mut now = Now { phase: first, step: 1, pass: 0 };
    let mut regions = clues.regions.iter().peekable();
    let has_steps = clues.regions.iter().any(|region| region.name.starts_with(STEP))
        || readings.iter().any(|reading| reading.phase == Some(Phase::Optimizer));
    let mut is_stepping = false;
    let mut all = Vec::with_capacity(recording.events.len());
    for (at, event) in recording.events.iter().enumerate() {
        while let Some(region) = regions.next_if(|region| region.event <= at) {
            if region.name.starts_with(STEP) {
                is_stepping = region.is_start;
                let phase = if is_stepping { Phase::Optimizer } else { Phase::Forward };
                turn(&mut now, phase, has_steps);
            }
        }
        let reading = clues.ran.get(at).copied().flatten();
        let reading = reading.and_then(|StackId(stack)| readings.get(stack as usize));
        let phase = match event {
            Event::Alloc { .. } => seen.phase(reading, now.phase),
            // What freed it is only known if it is not what allocated it.
            Event::FreeRequested { .. } | Event::FreeCompleted { .. }
                if seen.frees.get(at).copied().unwrap_or(false) =>
            {
                seen.phase(reading, now.phase)
            }
            _ => None,
        };
        if let Some(phase) = phase.filter(|phase| !is_stepping || *phase != Phase::Forward) {
            turn(&mut now, phase, has_steps);
        }
        all.push(now);
    }
    with_requests(&recording.events, all)
}

/// Segments come and go for the request that follows.
fn with_requests(events: &[Event], mut all: Vec<Now>) -> Vec<Now> {
    let mut next = None;
    for (event, now) in events.iter().zip(&mut all).rev() {
        match event {
            Event::Alloc { .. } | Event::OutOfMemory { .. } => next = Some(*now),
            Event::FreeRequested { .. } | Event::FreeCompleted { .. } => next = None,
            _ => *now = next.unwrap_or(*now),
        }
    }
    all
}

/// Another phase begins. A step ends with the optimizer's; where none is seen, with a backward pass.
fn turn(now: &mut Now, phase: Phase, has_steps: bool) {
    let Some(before) = now.phase else {
        now.phase = Some(phase);
        return;
    };
    if before == phase {
        return;
    }
    let is_next = phase == Phase::Forward && !has_steps;
    let after_backward = matches!(before, Phase::Backward | Phase::BeforeOptimizer);
    if before == Phase::Optimizer || (is_next && after_backward) {
        now.step = now.step.saturating_add(1);
    }
    (now.phase, now.pass) = (Some(phase), now.pass.saturating_add(1));
}

/// Do the events begin with the run? Then every block at the end was made by one of them.
fn begins(recording: &Recording, lives: &[Life]) -> bool {
    let first = recording.events.iter().find(|event| event.is_of_allocator());
    let is_segment = matches!(first, Some(Event::SegmentAlloc { .. } | Event::SegmentMap { .. }));
    is_segment && lives.iter().all(|life| life.born.is_some())
}

/// So many tensors of a forward pass have to stay before that says something.
const FEWEST_KEPT: usize = 8;

/// Does most of what the last forward pass made inside of modules stay to the end, or until a request fails?
pub(crate) fn keeps_graph(
    now: &[Now],
    lives: &[Life],
    stacks: &[Option<StackId>],
    readings: &[Reading],
    refused: &[usize],
) -> bool {
    let last = now.iter().rev().find(|now| now.phase == Some(Phase::Forward));
    let Some(pass) = last.map(|now| now.pass) else { return false };
    let is_inside = |stack: &Option<StackId>| {
        let reading = stack.and_then(|StackId(stack)| readings.get(stack as usize));
        reading.is_some_and(|reading| reading.module != TextId(0))
    };
    let (mut made, mut kept, mut count) = (0u64, 0u64, 0);
    for (life, stack) in lives.iter().zip(stacks) {
        let born = life.born.and_then(|at| now.get(at));
        if born.is_some_and(|now| now.pass == pass) && is_inside(stack) {
            made = made.saturating_add(life.size);
            let stays = life.freed.is_none_or(|freed| {
                let after = refused.partition_point(|at| Some(*at) < life.born);
                refused.get(after).is_some_and(|at| *at < freed)
            });
            if stays {
                kept = kept.saturating_add(life.size);
                count += 1;
            }
        }
    }
    FEWEST_KEPT <= count && made / 3 <= kept
}

/// What goes into a model: of what a forward pass makes before its first module, the last one.
pub(crate) fn inputs(
    now: &[Now],
    lives: &[Life],
    stacks: &[Option<StackId>],
    readings: &[Reading],
) -> HashSet<usize> {
    let mut found = HashSet::new();
    let mut last: Option<(u32, usize)> = None;
    let mut begun = None;
    for (index, (life, stack)) in lives.iter().zip(stacks).enumerate() {
        let reading = stack.and_then(|StackId(stack)| readings.get(stack as usize));
        let here = life.born.and_then(|at| Some((at, now.get(at)?)));
        let (Some(reading), Some((at, now))) = (reading, here) else { continue };
        if now.phase != Some(Phase::Forward) || begun == Some(now.pass) {
            continue;
        }
        if reading.module == TextId(0) && reading.phase.is_none() {
            last = Some((now.pass, index));
        } else if reading.module != TextId(0) {
            begun = Some(now.pass);
            let made = last.filter(|(pass, _)| *pass == now.pass).map(|(_, index)| index);
            let is_there = |made: &usize| {
                let life = lives.get(*made);
                life.is_some_and(|life| life.freed.is_none_or(|freed| at < freed))
            };
            found.extend(made.filter(is_there));
        }
    }
    found
}

/// So many nodes after the first may free what that one made: its result is the next one's input.
const NODES: usize = 3;

/// Where events begin in the midst of a backward pass: the event at which the node that ran, and those that take its
/// results, are through. 0 where they begin elsewhere, or where no frames tell.
pub(crate) fn begun(events: &[Event], clues: &Clues, readings: &[Reading], now: &[Now]) -> usize {
    let mut nodes = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let is_alloc = matches!(event, Event::Alloc { .. });
        let stack = clues.ran.get(at).copied().flatten().filter(|_| is_alloc);
        let Some(reading) = stack.and_then(|StackId(stack)| readings.get(stack as usize)) else {
            continue;
        };
        let phase = now.get(at).and_then(|now| now.phase);
        if phase != Some(Phase::Backward) || reading.node == TextId(0) {
            return 0;
        }
        if nodes.last() != Some(&reading.node) {
            nodes.push(reading.node);
        }
        if NODES < nodes.len() {
            return at;
        }
    }
    0
}

/// Events at which gradients are set to nothing.
pub(crate) fn zeroed(clues: &Clues, readings: &[Reading]) -> HashSet<usize> {
    let zeroes = |stack: &Option<StackId>| {
        let reading = stack.and_then(|StackId(stack)| readings.get(stack as usize));
        reading.is_some_and(|reading| reading.zeroes)
    };
    let events = clues.ran.iter().enumerate().filter(|(_, stack)| zeroes(stack));
    events.map(|(at, _)| at).collect()
}

/// What the stacks of a recording can tell at all.
struct Seen {
    /// Stacks of Python are recorded, and none of C++: a stack without frames is one of the engine's threads.
    only_python: bool,
    /// For each event: it is a free, and its stack is of what freed the block.
    frees: Vec<bool>,
}

impl Seen {
    fn of(recording: &Recording, clues: &Clues, readings: &[Reading]) -> Seen {
        let only_python = readings.iter().any(|reading| reading.has_python)
            && !readings.iter().any(|reading| reading.has_cpp);
        let mut made = std::collections::HashMap::new();
        let mut frees = Vec::with_capacity(recording.events.len());
        for (at, event) in recording.events.iter().enumerate() {
            let ran = clues.ran.get(at).copied().flatten();
            frees.push(match event {
                Event::Alloc { address, .. } => {
                    made.insert(*address, ran);
                    false
                }
                Event::FreeRequested { address, .. } | Event::FreeCompleted { address, .. } => {
                    made.get(address).is_some_and(|by| *by != ran)
                }
                _ => false,
            });
        }
        // Where no free has frames of its own, none says who freed.
        let any = frees.iter().any(|is_own| *is_own);
        if !any {
            frees.clear();
        }
        Seen { only_python, frees }
    }

    /// The phase of an event with this reading, after another phase.
    fn phase(&self, reading: Option<&Reading>, before: Option<Phase>) -> Option<Phase> {
        let Some(reading) = reading else {
            return self.only_python.then_some(Phase::Backward);
        };
        if reading.phase.is_some() {
            return reading.phase;
        }
        // Code of the script itself, between passes.
        match before {
            _ if !reading.has_python => None,
            Some(Phase::Optimizer) => Some(Phase::Forward),
            Some(Phase::Backward) => Some(Phase::BeforeOptimizer),
            _ => None,
        }
    }
}
