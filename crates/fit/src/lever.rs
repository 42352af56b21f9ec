//! The levers of a plan. What each is, and when it is its turn, says the table in `diagnose::remedies`.

pub use diagnose::Label;
use diagnose::remedies::{Probe, Row, Stage, TABLE, find, row};

use crate::patch::Edit;

/// A lever of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lever {
    /// One without options.
    Plain(&'static str),
    /// A setting of PyTorch's allocator.
    Allocator(String),
    /// Activations of these modules are computed again.
    Checkpoint(Vec<String>),
    /// The same, but for the results of products, which are kept.
    Selective(Vec<String>),
    /// Batches in so many parts.
    Accumulate(u32),
    /// These modules are not trained.
    Freeze(Vec<String>),
    /// Shards on so many GPUs.
    Shard(u32),
    /// A knob of the user's at another value.
    Knob { name: String, value: String },
    /// A setting that the script has already, and that is like a lever.
    Own(Own),
}

/// A setting of the script's own at another value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Own {
    /// As the user knows it: `--amp`, `train.use_checkpoint`.
    pub name: String,
    /// The row of the lever that it is like.
    pub like: String,
    /// It and its value, as they would be written.
    pub shown: String,
    /// Of smaller batches: how many there are in a step.
    pub parts: u32,
    /// And how large each is.
    pub batch: Option<u32>,
    /// Words behind the command that set it.
    pub words: Vec<String>,
    /// Or its value as text.
    pub edits: Vec<Edit>,
}

// Taken from the table, so that an id that it does not have does not compile.
pub(crate) const OWN: &str = row("own-setting").id;
pub(crate) const ALLOCATOR: &str = row("allocator").id;
pub(crate) const CHECKPOINT: &str = row("checkpoint").id;
pub(crate) const SELECTIVE: &str = row("selective-checkpoint").id;
pub(crate) const LINEAR_LOSS: &str = row("linear-cross-entropy").id;
pub(crate) const CHUNKED_LOSS: &str = row("chunked-cross-entropy").id;
pub(crate) const SWITCH: &str = row("gradient-checkpointing").id;
pub(crate) const ACCUMULATE: &str = row("accumulate").id;
pub(crate) const FREEZE: &str = row("freeze").id;
pub(crate) const SHARD: &str = row("fsdp").id;
pub(crate) const OFFLOAD: &str = row("offload").id;
pub(crate) const OFFLOAD_OPTIMIZER: &str = row("offload-optimizer").id;
pub(crate) const HALF_FROZEN: &str = row("half-frozen").id;
pub(crate) const FUSED_OPTIMIZER: &str = row("fused-optimizer").id;
pub(crate) const NO_FOREACH: &str = row("no-foreach").id;

/// Lower precision on cards that have bfloat16.
pub const AMP_BF16: &str = row("amp-bf16").id;
/// And on those that do not.
pub const AMP_FP16: &str = row("amp-fp16").id;

/// The allocator's setting that is tried.
const SEGMENTS: &str = "expandable_segments:True";

impl Lever {
    /// Its id; of a knob, its name.
    pub fn id(&self) -> &str {
        match self {
            Lever::Plain(id) => id,
            Lever::Allocator(_) => ALLOCATOR,
            Lever::Checkpoint(_) => CHECKPOINT,
            Lever::Selective(_) => SELECTIVE,
            Lever::Accumulate(_) => ACCUMULATE,
            Lever::Freeze(_) => FREEZE,
            Lever::Shard(_) => SHARD,
            Lever::Knob { name, .. } => name,
            Lever::Own(own) => &own.name,
        }
    }

    /// Its row, or that of the lever that it is like; a knob has none.
    pub fn row(&self) -> Option<&'static Row> {
        match self {
            Lever::Knob { .. } => None,
            Lever::Own(own) => find(&own.like),
            _ => find(self.id()),
        }
    }

    /// A row as it is tried first; `None` if it needs modules, which only a look at the script can name.
    pub(crate) fn of(row: &Row) -> Option<Lever> {
        match row.id {
            ALLOCATOR => Some(Lever::Allocator(SEGMENTS.to_owned())),
            ACCUMULATE => Some(Lever::Accumulate(2)),
            CHECKPOINT | SELECTIVE | FREEZE | SHARD => None,
            // Which there are, the script says.
            OWN => Some(Lever::Plain(OWN)),
            id => Some(Lever::Plain(id)),
        }
    }

    /// Whether it is tried as text, in a copy.
    pub fn is_text(&self) -> bool {
        matches!(self, Lever::Own(_))
            || self.row().and_then(|row| row.lever).is_some_and(|lever| lever.is_text)
    }

    /// Whether it divides batches, by itself or by a setting of the script's.
    pub fn divides(&self) -> bool {
        matches!(self, Lever::Accumulate(_)) || self.is_like(ACCUMULATE)
    }

    /// Whether it computes the same and costs nothing.
    pub(crate) fn is_free(&self) -> bool {
        self.row().and_then(|row| row.lever).is_some_and(|lever| lever.stage == Stage::Free)
    }

    /// Whether it changes what the training does, and is taken only if that is allowed.
    pub(crate) fn retrains(&self) -> bool {
        let as_lever = self.row().and_then(|row| row.lever);
        as_lever.is_some_and(|lever| lever.stage == Stage::Training)
    }

    /// Whether it is a setting of the script's that is like this lever.
    pub(crate) fn is_like(&self, id: &str) -> bool {
        matches!(self, Lever::Own(own) if own.like == id)
    }

    /// Whether it must not be asked together with others if it finds something to act on.
    pub fn is_asked_apart(&self) -> bool {
        let as_lever = self.row().and_then(|row| row.lever);
        as_lever.is_some_and(|lever| lever.probe == Probe::Apart)
    }
}

/// All of them, in the order in which they are tried.
pub fn all() -> impl Iterator<Item = &'static Row> {
    TABLE.iter().filter(|row| row.lever.is_some())
}

/// Those of one stage.
pub(crate) fn of_stage(stage: Stage) -> impl Iterator<Item = &'static Row> {
    all().filter(move |row| row.lever.is_some_and(|lever| lever.stage == stage))
}

/// Those that are asked beside the first look if they find something to act on.
pub(crate) fn probed() -> impl Iterator<Item = &'static Row> {
    all().filter(|row| row.lever.is_some_and(|lever| lever.probe != Probe::No))
}

/// The label of a lever; in a model whose BatchNorm sees it, or before that is known.
pub(crate) fn label(lever: &Lever, meets_batch_norm: bool) -> Label {
    // What a setting of the user's means, only the user knows.
    lever.row().map_or(Label::ChangesTraining, |row| row.label_with(meets_batch_norm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lever_has_the_id_and_the_label_of_its_row() {
        for row in all() {
            let lever = Lever::of(row).unwrap_or(match row.id {
                CHECKPOINT => Lever::Checkpoint(Vec::new()),
                SELECTIVE => Lever::Selective(Vec::new()),
                SHARD => Lever::Shard(2),
                _ => Lever::Freeze(Vec::new()),
            });
            assert_eq!((lever.id(), label(&lever, false)), (row.id, row.label));
            assert_eq!(label(&lever, true), row.label_with(true));
        }
        let knob = Lever::Knob { name: "offload".to_owned(), value: "1".to_owned() };
        assert_eq!(label(&knob, false), Label::ChangesTraining);
    }
}
