//! What each allocation is: by its frames, by how long it lives, and by sizes that belong together.

use std::collections::HashSet;

use recording::{Category, Frame, Phase, StackId, Text, TextId};

use crate::growing;
use crate::lives::Life;
use crate::phases::Now;
use crate::reading::Reading;
use crate::rules::{FACTORIES, Says};
use crate::sizes;

/// By what a category is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum By {
    /// Frames say it alone.
    Frames,
    /// Frames say in which pass it was made, and it outlives that pass or does not.
    Lifetimes,
    /// It has the size of something that is known.
    Sizes,
    /// It was there before the first event and stays.
    Age,
}

impl By {
    pub(crate) fn name(self) -> &'static str {
        match self {
            By::Frames => "frames",
            By::Lifetimes => "frames and lifetimes",
            By::Sizes => "sizes and lifetimes",
            By::Age => "lifetimes alone",
        }
    }
}

/// What an allocation is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Label {
    pub(crate) category: Category,
    /// A name of the rule that said it; empty for most.
    pub(crate) name: &'static str,
    pub(crate) by: By,
}

/// All that labels are made from.
pub(crate) struct Scene<'a> {
    pub(crate) lives: &'a [Life],
    /// What runs at each event.
    pub(crate) now: &'a [Now],
    pub(crate) readings: &'a [Reading],
    /// The stack of each life.
    pub(crate) stacks: &'a [Option<StackId>],
    pub(crate) texts: &'a Text,
    /// Where buffers come to the card.
    pub(crate) buffers: HashSet<Frame>,
    /// Frees by which an optimizer sets gradients to nothing.
    pub(crate) zeroed: HashSet<usize>,
    /// Requests that failed.
    pub(crate) refused: Vec<usize>,
    /// Lives that go into a model.
    pub(crate) inputs: HashSet<usize>,
    /// Up to here the node runs, or the one after it, in whose midst the events begin: what they free may be theirs.
    pub(crate) begun: usize,
    /// How many sets of state the optimizer has, by the file it is written in; `None` if that is not known.
    pub(crate) states: Option<usize>,
    /// A model runs somewhere.
    pub(crate) has_passes: bool,
    /// Most of what the last forward pass made inside of modules is never freed: only a graph keeps such things.
    pub(crate) keeps_graph: bool,
    /// A backward pass runs somewhere.
    pub(crate) trains: bool,
}

impl Scene<'_> {
    pub(crate) fn at(&self, event: Option<usize>) -> Now {
        event.and_then(|at| self.now.get(at)).copied().unwrap_or_default()
    }

    pub(crate) fn reading(&self, index: usize) -> Reading {
        let stack = self.stacks.get(index).copied().flatten();
        stack.and_then(|stack| self.readings.get(stack.0 as usize)).copied().unwrap_or_default()
    }

    /// Does a backward pass free what was made before it, in the same step? Then autograd kept it.
    fn is_saved(&self, life: &Life) -> bool {
        let [born, end] = [life.born, life.freed].map(|at| self.at(at));
        let is_later = life.born.is_none() || (born.pass != end.pass && born.step == end.step);
        life.freed.is_some() && end.phase == Some(Phase::Backward) && is_later
    }

    /// Is it alive when its pass has ended, or to the end of the events?
    fn outlives(&self, life: &Life) -> bool {
        let born = life.born.map(|at| self.at(Some(at)).pass);
        life.freed.is_none_or(|freed| born.is_none_or(|pass| self.at(Some(freed)).pass != pass))
    }

    /// Did a request fail while it was alive, in a pass that should have freed it?
    fn has_failed(&self, born: usize, freed: usize) -> bool {
        let after = self.refused.partition_point(|at| *at < born);
        let is_within = |at: &&usize| **at < freed;
        let failed = self.refused.get(after).filter(is_within);
        failed.is_some_and(|at| {
            matches!(self.at(Some(*at)).phase, Some(Phase::Forward | Phase::Backward))
        })
    }

    /// Has a backward pass ended between an event and the end?
    fn is_outdated(&self, born: usize) -> bool {
        let pass = self.at(Some(born)).pass;
        let later = self.now.get(born..).unwrap_or_default();
        let backward =
            later.iter().position(|now| now.phase == Some(Phase::Backward) && pass < now.pass);
        backward
            .and_then(|at| later.get(at..))
            .is_some_and(|rest| rest.iter().any(|now| now.phase != Some(Phase::Backward)))
    }
}

/// A label for each life; `None` where nothing is known.
pub(crate) fn labels(scene: &Scene<'_>) -> Vec<Option<Label>> {
    let all = scene.lives.iter().enumerate();
    let mut labels: Vec<Option<Label>> =
        all.map(|(index, life)| label(scene, life, &scene.reading(index))).collect();
    for index in &scene.inputs {
        if let Some(label) = labels.get_mut(*index).filter(|label| is_of_pass(label)) {
            *label = by(Category::Inputs, By::Lifetimes);
        }
    }
    held_last(scene, &mut labels);
    growing::caches(scene, &mut labels);
    sizes::gradients(scene, &mut labels);
    sizes::older(scene, &mut labels);
    sizes::casts(scene, &mut labels);
    labels
}

/// Nothing but where it was made says what it is.
fn is_of_pass(label: &Option<Label>) -> bool {
    label.is_none_or(|label| {
        label.by == By::Lifetimes
            && matches!(label.category, Category::Temporaries | Category::Activations)
    })
}

/// What a script holds until it is made anew: the last one is freed by nobody, and is what those before it were.
fn held_last(scene: &Scene<'_>, labels: &mut [Option<Label>]) {
    let temporary =
        |label: &Option<Label>| label.is_some_and(|it| it.category == Category::Temporaries);
    let all = scene.lives.iter().zip(&*labels).zip(scene.stacks);
    let before = all.filter(|((life, label), _)| life.freed.is_some() && temporary(label));
    let before: HashSet<(StackId, u64)> =
        before.filter_map(|((life, _), stack)| Some(((*stack)?, life.size))).collect();
    for ((life, label), stack) in scene.lives.iter().zip(labels).zip(scene.stacks) {
        let is_last = life.born.is_some() && life.freed.is_none() && label.is_none();
        if is_last && stack.is_some_and(|stack| before.contains(&(stack, life.size))) {
            *label = by(Category::Temporaries, By::Lifetimes);
        }
    }
}

fn by(category: Category, by: By) -> Option<Label> {
    Some(Label { category, name: "", by })
}

/// By the stack alone, else by stack and lifetime.
fn label(scene: &Scene<'_>, life: &Life, reading: &Reading) -> Option<Label> {
    match reading.says {
        // What is left of a reduction over ranks is this rank's gradient.
        Some(Says::Is(Category::Communication, _))
            if reading.phase == Some(Phase::Backward) && scene.outlives(life) =>
        {
            return by(Category::Gradients, By::Lifetimes);
        }
        // Where a model is trained, what its cache holds is kept by autograd.
        Some(Says::Is(Category::KvCache, _)) if scene.is_saved(life) => {}
        Some(Says::Is(category, name)) => return Some(Label { category, name, by: By::Frames }),
        Some(Says::Keeps(category, name)) if scene.outlives(life) => {
            return Some(Label { category, name, by: By::Lifetimes });
        }
        _ => {}
    }
    if reading.has_cpp && !reading.makes_tensor && reading.calls_library {
        return by(Category::Workspace, By::Frames);
    }
    let Some(born) = life.born else { return older(scene, life, reading) };
    let is_kept = scene.outlives(life);
    // Before anything is known of passes, a history begins in the middle of a script.
    let Some(phase) = reading.phase.or(scene.at(Some(born)).phase) else {
        return construction(scene, life, reading);
    };
    match phase {
        Phase::Optimizer if is_kept => by(Category::Optimizer, By::Lifetimes),
        // A backward pass that is differentiated itself makes such.
        Phase::Backward if is_kept && scene.is_saved(life) => {
            by(Category::Activations, By::Lifetimes)
        }
        Phase::Backward if is_kept => by(Category::Gradients, By::Lifetimes),
        Phase::Optimizer | Phase::Backward => by(Category::Temporaries, By::Lifetimes),
        Phase::BeforeOptimizer if reading.phase.is_some() => {
            by(Category::Temporaries, By::Lifetimes)
        }
        Phase::Construction => construction(scene, life, reading),
        _ => forward(scene, life, reading, born),
    }
}

/// What is older than the events: by where it was made, and by the pass that frees it.
fn older(scene: &Scene<'_>, life: &Life, reading: &Reading) -> Option<Label> {
    let end = life.freed.map(|freed| scene.at(Some(freed)));
    let is_zeroed = life.freed.is_some_and(|freed| scene.zeroed.contains(&freed));
    match (reading.phase, end.and_then(|now| now.phase)) {
        (Some(Phase::Optimizer), None | Some(Phase::Optimizer)) => {
            by(Category::Optimizer, By::Lifetimes)
        }
        (Some(Phase::Backward), None) => by(Category::Gradients, By::Lifetimes),
        (None | Some(Phase::Backward), _) if is_zeroed => by(Category::Gradients, By::Frames),
        (None, Some(Phase::Optimizer)) => by(Category::Optimizer, By::Lifetimes),
        (None, Some(Phase::Backward)) if life.freed.is_some_and(|freed| freed < scene.begun) => {
            None
        }
        (None | Some(Phase::Forward), Some(Phase::Backward)) => {
            by(Category::Activations, By::Lifetimes)
        }
        (None, _) if reading.builds && reading.says == Some(Says::Copies) => None,
        (None, None) if reading.builds => built(scene, reading),
        _ => None,
    }
}

/// What is built and stays is the model's.
fn built(scene: &Scene<'_>, reading: &Reading) -> Option<Label> {
    match reading.applied {
        Some(frame) if scene.buffers.contains(&frame) => by(Category::Buffers, By::Frames),
        _ => by(Category::Weights, By::Lifetimes),
    }
}

/// Before the first pass: a model and what it is copied to; what a script brings along.
fn construction(scene: &Scene<'_>, life: &Life, reading: &Reading) -> Option<Label> {
    if !scene.outlives(life) {
        return by(Category::Temporaries, By::Lifetimes);
    }
    match reading.says {
        Some(Says::Copies) if !reading.builds => by(Category::ModelCopies, By::Lifetimes),
        _ if reading.builds => built(scene, reading),
        _ => brought(scene, reading),
    }
}

/// What a script brings to the card or makes there outside of modules is what it works on.
fn brought(scene: &Scene<'_>, reading: &Reading) -> Option<Label> {
    let operator = scene.texts.get(reading.operator);
    let is_made = !operator.is_empty() && !FACTORIES.contains(&operator);
    if is_made { None } else { by(Category::Inputs, By::Frames) }
}

/// Of a forward pass, or between passes.
fn forward(scene: &Scene<'_>, life: &Life, reading: &Reading, born: usize) -> Option<Label> {
    let is_outside = reading.module == TextId(0) && reading.phase != Some(Phase::Forward);
    if is_outside && reading.builds && scene.outlives(life) {
        return match reading.says {
            Some(Says::Copies) => by(Category::ModelCopies, By::Lifetimes),
            _ => built(scene, reading),
        };
    }
    let is_brought = FACTORIES.contains(&scene.texts.get(reading.operator));
    if is_outside && is_brought && !scene.is_saved(life) {
        return by(Category::Inputs, By::Frames);
    }
    let Some(freed) = life.freed else {
        let is_inside = reading.module != TextId(0);
        let may_be_kept = match scene.trains {
            true => !scene.is_outdated(born),
            false => scene.keeps_graph && is_inside,
        };
        return may_be_kept.then(|| by(Category::Activations, By::Lifetimes)).flatten();
    };
    let end = scene.at(Some(freed));
    let is_kept = end.phase == Some(Phase::Backward) && end.pass != scene.at(Some(born)).pass;
    // What outlives the backward pass too is held by the script; but a pass that ran out of memory frees nothing.
    let may_be_kept = scene.trains || scene.keeps_graph;
    let is_kept = is_kept || (may_be_kept && scene.has_failed(born, freed));
    by(if is_kept { Category::Activations } else { Category::Temporaries }, By::Lifetimes)
}
