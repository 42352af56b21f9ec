//! What may be done, and how far each changes results. Nothing here has been tried: `fit` tries.
//!
//! `table.rs` has a row for every change: detectors name rows, `fit` tries those that are levers, and the
//! reference pages are made of them. Nothing else says what a change does to results.

mod table;

use anatomy::Anatomy;

use crate::label::Label;
use crate::phrases::is_spread;
use crate::scene::{Scene, Thing};

pub use table::TABLE;

/// A change that may help, whatever the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// For people and JSON; of a lever, the name of its file in `python/fathom/_doorway/levers` too.
    pub id: &'static str,
    /// How far it changes results.
    pub label: Label,
    /// What to change.
    pub change: &'static str,
    /// Label and change for a model in which BatchNorm sees the change.
    pub with_batch_norm: Option<(Label, &'static str)>,
    /// What becomes less of it.
    pub acts_on: &'static str,
    /// How `fit` tries it; `None` if it is done by hand.
    pub lever: Option<AsLever>,
}

/// How a lever is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsLever {
    /// When it is its turn.
    pub stage: Stage,
    /// What it does to the script, for the reference.
    pub does: &'static str,
    /// It is tried only where a cause of the peak, or the user, asks for it.
    pub if_asked: bool,
    /// Whether it is asked beside the first look if it finds something to act on.
    pub probe: Probe,
    /// It does nothing inside of the process: what it means is text, and is tried in a copy.
    pub is_text: bool,
}

/// The stages of a search, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// What the script can do already, if it is asked to; each setting has its turn beside the lever it is like.
    Own,
    /// Computes the same and costs nothing.
    Free,
    /// Computes some of it again.
    Recompute,
    /// Smaller batches whose gradients add up.
    Divide,
    /// Waits for the bus to the host.
    Offload,
    /// Numbers of fewer bits.
    Precision,
    Training,
}

impl Stage {
    /// For the reference.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Own => "own",
            Stage::Free => "free",
            Stage::Recompute => "recompute",
            Stage::Divide => "divide",
            Stage::Offload => "offload",
            Stage::Precision => "precision",
            Stage::Training => "training",
        }
    }
}

/// Whether a lever can be asked without harm if it finds something to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// No: it may make a script fail, or needs options that are not known yet.
    No,
    /// Together with others.
    Together,
    /// It changes when the optimizer steps: apart from those that do not.
    Apart,
}

/// A change for the model at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// That of its row.
    pub id: &'static str,
    /// How far it changes results.
    pub label: Label,
    /// What to change.
    pub change: String,
}

impl Row {
    /// How far it changes results, if BatchNorm is where it acts, or is not.
    pub fn label_with(&self, has_batch_norm: bool) -> Label {
        self.with_batch_norm.filter(|_| has_batch_norm).map_or(self.label, |(label, _)| label)
    }

    /// How far it changes results, in words for any model.
    pub fn results(&self) -> String {
        match self.with_batch_norm {
            Some((label, _)) => format!("{}; {label} with BatchNorm", self.label),
            None => self.label.to_string(),
        }
    }

    /// For the model that was recorded.
    pub(crate) fn remedy(&self, anatomy: &Anatomy) -> Remedy {
        let special = self.with_batch_norm.filter(|_| has_batch_norm(anatomy));
        let (label, change) = special.unwrap_or((self.label, self.change));
        Remedy { id: self.id, label, change: change.to_owned() }
    }
}

/// The row of an id that somebody else has written.
pub fn find(id: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.id == id)
}

/// The row of an id that stands in the code: called in a `const`, a wrong one does not compile.
pub const fn row(id: &str) -> &'static Row {
    let mut at = 0;
    while at < TABLE.len() {
        if is_equal(TABLE[at].id.as_bytes(), id.as_bytes()) {
            return &TABLE[at];
        }
        at += 1;
    }
    panic!("the table of remedies has no such row")
}

/// `==`, which cannot be called in a `const`.
const fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// `remedies!(scene, "checkpoint", …)`: rows of the table for this model. A wrong id does not compile.
macro_rules! remedies {
    ($scene:expr $(, $id:literal)*) => {
        vec![$(const { $crate::remedies::row($id) }.remedy($scene.anatomy)),*]
    };
}
pub(crate) use remedies;

/// What may be done about activations. Checkpointing brings back what one block keeps: it helps where
/// many blocks keep a little each.
pub(crate) fn of_activations(scene: &Scene<'_>, saved: &[usize]) -> Vec<Remedy> {
    let mut found = Vec::new();
    if is_spread(scene, saved) {
        found.extend(remedies!(scene, "checkpoint"));
    }
    if !computes_in_half(scene) && !are_half(scene, saved) {
        found.extend(remedies!(scene, "amp-bf16"));
    }
    found.extend(remedies!(scene, "batch", "accumulate", "inputs"));
    found
}

/// Libraries of graphs.
const GRAPHS: [&str; 2] = ["torch_geometric/", "dgl/"];

/// Changes that are made to a training: to its backward pass, its optimizer, its loss or what its batches teach.
const OF_TRAINING: [&str; 25] = [
    "not-followed",
    "linear-cross-entropy",
    "zero-grad",
    "bucket-view",
    "no-foreach",
    "ema-cpu",
    "chunked-cross-entropy",
    "fused-optimizer",
    "gradient-checkpointing",
    "checkpoint",
    "accumulate",
    "offload",
    "offload-optimizer",
    "lora",
    "fsdp",
    "half-frozen",
    "amp-fp16",
    "8bit-optimizer",
    "adafactor",
    "sgd",
    "freeze",
    "batch",
    "no-retain",
    "remove-unused",
    "whole-checkpoint",
];

/// Without what cannot be done here, or is done already.
pub(crate) fn that_apply(scene: &Scene<'_>, remedies: Vec<Remedy>) -> Vec<Remedy> {
    let is_idle = |remedy: &Remedy| match remedy.id {
        "batch" | "accumulate" => has_one_sample(scene) || has_whole_graph(scene),
        "channels-last" => !scene.anatomy.facts.of("channels_last").is_empty(),
        "allocator" => !scene.anatomy.facts.of("expandable_segments").is_empty(),
        _ => false,
    };
    let remedies: Vec<Remedy> = remedies.into_iter().filter(|it| !is_idle(it)).collect();
    if scene.is_inference() { of_inference(scene, &remedies) } else { remedies }
}

/// Whether every input that has samples has one: no batch is smaller.
fn has_one_sample(scene: &Scene<'_>) -> bool {
    let is_input = |thing: &&Thing<'_>| {
        thing.is(recording::Category::Inputs)
            && !thing.tensor.dtype.is_empty()
            && 2 <= thing.shape().len()
    };
    let mut inputs = scene.things.iter().filter(is_input).peekable();
    inputs.peek().is_some() && inputs.all(|thing| thing.shape().first() == Some(&1))
}

/// Whether a library of graphs works on one list of edges that was there before the first step: there is no batch.
fn has_whole_graph(scene: &Scene<'_>) -> bool {
    let is_of_graphs = |thing: &Thing<'_>| {
        let file = &thing.tensor.origin.library.file;
        GRAPHS.iter().any(|package| file.starts_with(package))
    };
    let is_list = |thing: &Thing<'_>| {
        thing.is(recording::Category::Inputs)
            && thing.tensor.dtype == "int64"
            && thing.tensor.born.phase == Some(recording::Phase::Construction)
            && matches!(thing.shape(), [2, _])
    };
    scene.things.iter().any(is_of_graphs) && scene.things.iter().any(is_list)
}

/// The same where nothing is trained: a batch is only as large as is convenient then.
fn of_inference(scene: &Scene<'_>, remedies: &[Remedy]) -> Vec<Remedy> {
    let mut found: Vec<Remedy> = Vec::new();
    for remedy in remedies {
        match remedy.id {
            "batch" => found.extend(remedies!(scene, "fewer-sequences")),
            id if OF_TRAINING.contains(&id) => {}
            _ => found.push(remedy.clone()),
        }
    }
    found
}

/// Whether autocast is on, or most of the weights have two bytes or fewer: the model computes in half precision already.
pub(crate) fn computes_in_half(scene: &Scene<'_>) -> bool {
    let weights: Vec<usize> = (0..scene.things.len())
        .filter(|index| scene.things[*index].is(recording::Category::Weights))
        .collect();
    let count = |is_wanted: &dyn Fn(&Thing<'_>) -> bool| {
        let wanted = weights.iter().map(|index| &scene.things[*index]).filter(|it| is_wanted(it));
        crate::scene::sum(wanted.filter_map(Thing::elements))
    };
    let short = count(&|thing| !matches!(thing.tensor.dtype.as_str(), "float32" | "float64"));
    !scene.anatomy.facts.of("autocast").is_empty() || count(&|_| true) < short.saturating_mul(2)
}

/// Most of them take two bytes an element already, by whatever has cast them.
fn are_half(scene: &Scene<'_>, members: &[usize]) -> bool {
    let is_half = |thing: &Thing<'_>| matches!(thing.tensor.dtype.as_str(), "bfloat16" | "float16");
    let half = scene.part(members, is_half);
    scene.bytes(members) < 2 * scene.bytes(&half)
}

fn has_batch_norm(anatomy: &Anatomy) -> bool {
    // Frozen ones take no statistics from a batch.
    let is_one = |class: &str| class.contains("BatchNorm") && !class.contains("Frozen");
    anatomy.modules.iter().any(|(_, class)| is_one(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_is_there_once() {
        let mut ids: Vec<&str> = TABLE.iter().map(|row| row.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), TABLE.len());
    }

    #[test]
    fn changes_of_a_training_are_rows() {
        assert!(OF_TRAINING.iter().all(|id| find(id).is_some()));
    }

    #[test]
    fn batch_norm_decides_what_accumulation_and_checkpoints_change() {
        let layer = |class: &str| Anatomy {
            modules: vec![("norm".to_owned(), class.to_owned())],
            ..Anatomy::default()
        };
        let labels = |class: &str| {
            ["accumulate", "checkpoint", "amp-bf16"]
                .map(|id| find(id).unwrap().remedy(&layer(class)).label)
        };
        assert_eq!(
            labels("LayerNorm"),
            [Label::NumericallyEqual, Label::Exact, Label::ChangesNumerics]
        );
        assert_eq!(
            labels("BatchNorm2d"),
            [Label::ChangesStatistics, Label::NumericallyEqual, Label::ChangesNumerics]
        );
        assert_eq!(labels("FrozenBatchNorm2d"), labels("LayerNorm"));
    }

    /// The search goes from one stage to the next, and the mildest come first in each.
    #[test]
    fn levers_stand_in_the_order_in_which_they_are_tried() {
        let levers = TABLE.iter().filter_map(|row| Some((row.lever?.stage, row)));
        let stages: Vec<Stage> = levers.map(|(stage, _)| stage).collect();
        assert!(stages.is_sorted(), "{stages:?}");
        let is_free = |row: &&Row| row.lever.is_some_and(|lever| lever.stage == Stage::Free);
        for row in TABLE.iter().filter(is_free) {
            assert!(row.label <= Label::NumericallyEqual, "{}", row.id);
        }
    }
}
