//! Names for snapshots: what each allocation is, who made it and in which pass, as far as the file tells.
//!
//! A recording of Fathom says these things; a memory snapshot of PyTorch says what ran. [`infer`] takes a snapshot's
//! recording and its [`Clues`], and gives the recording with the marks that a recorder would have made: phases, modules,
//! operators, categories. Each category says by what it is known ([`recording::Mark::Evidence`]); where nothing tells, it
//! stays unknown. Nothing is replayed: lives follow from the trace's own addresses.
//!
//! - `rules`: the one table of what frames say; `reading`, `cpp`: stacks read by it;
//! - [`Sources`]: the class around a line of Python, where the file is at hand;
//! - `lives`, `phases`: every allocation, and what ran at every event;
//! - `labels`, `sizes`: categories by frames and lifetimes, and by sizes that belong together; `buffers` tells buffers from
//!   parameters; `growing`: caches of inference; `layers`: modules of gradients, weights and states;
//! - `marks`: what was found, written into the recording.

// A file may come from anyone: no number in it may make this panic.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

mod buffers;
mod cpp;
mod growing;
mod labels;
mod layers;
mod lives;
mod marks;
mod phases;
mod reading;
mod rules;
mod sizes;
mod sources;

use recording::{Event, Phase, Recording, StackId, TextId};
use snapshot::Clues;

use labels::Scene;
use layers::Known;
use lives::Life;
use reading::Reading;
pub use sources::{NoSources, Sources};

/// The recording with names.
pub fn infer(mut recording: Recording, clues: &Clues, sources: &dyn Sources) -> Recording {
    let readings = reading::read(&mut recording, sources);
    let lives = lives::lives(&recording);
    let now = phases::phases(&recording, clues, &readings, &lives);
    let stacks = stacks(&recording, clues, &lives);
    let labels = {
        let buffers = buffers::lines(&recording, sources, &readings, &stacks);
        let refused = refused(&recording);
        let has_passes = readings
            .iter()
            .any(|reading| matches!(reading.phase, Some(Phase::Forward | Phase::Backward)));
        let trains = now.iter().any(|now| now.phase == Some(Phase::Backward));
        let scene = Scene {
            lives: &lives,
            now: &now,
            readings: &readings,
            stacks: &stacks,
            texts: &recording.texts,
            buffers,
            inputs: phases::inputs(&now, &lives, &stacks, &readings),
            begun: phases::begun(&recording.events, clues, &readings, &now),
            zeroed: phases::zeroed(clues, &readings),
            states: states(&recording),
            has_passes,
            keeps_graph: phases::keeps_graph(&now, &lives, &stacks, &readings, &refused),
            trains,
            refused,
        };
        labels::labels(&scene)
    };
    let known =
        Known { lives: &lives, labels: &labels, stacks: &stacks, readings: &readings, now: &now };
    let modules = layers::modules(&mut recording, &known);
    owners(&mut recording, &readings);
    marks::write(&mut recording, &lives, &labels, &modules, &now);
    recording
}

/// How many sets of state the optimizers of a recording have, if all have as many.
fn states(recording: &Recording) -> Option<usize> {
    let files = recording.frames.iter().map(|frame| recording.texts.get(frame.file));
    let sets = files.filter_map(|file| {
        let name = file.replace('\\', "/");
        let name = name.rsplit_once("torch/optim/")?.1.strip_suffix(".py")?.to_owned();
        rules::STATES.iter().find(|(optimizer, _)| *optimizer == name).map(|(_, sets)| *sets)
    });
    let sets: std::collections::BTreeSet<usize> = sets.collect();
    sets.first().copied().filter(|_| sets.len() == 1)
}

/// Requests that failed.
fn refused(recording: &Recording) -> Vec<usize> {
    let events = recording.events.iter().enumerate();
    let failed = events.filter(|(_, event)| matches!(event, Event::OutOfMemory { .. }));
    failed.map(|(at, _)| at).collect()
}

/// The stack that ran when each life began: an owner may have that of the forward pass instead.
fn stacks(recording: &Recording, clues: &Clues, lives: &[Life]) -> Vec<Option<StackId>> {
    let stack = |life: &Life| {
        let ran = life.born.and_then(|at| clues.ran.get(at).copied().flatten());
        let owner = recording.owners.get(life.owner.0 as usize);
        ran.or(owner.and_then(|owner| owner.stack))
    };
    lives.iter().map(stack).collect()
}

/// Module, operator and node of every owner, as its stack says.
fn owners(recording: &mut Recording, readings: &[Reading]) {
    for owner in &mut recording.owners {
        let reading = owner.stack.and_then(|stack| readings.get(stack.0 as usize));
        let Some(reading) = reading else { continue };
        (owner.module, owner.node) = (reading.module, reading.node);
        if owner.operator == TextId(0) && reading.node == TextId(0) {
            owner.operator = reading.operator;
        }
    }
}
