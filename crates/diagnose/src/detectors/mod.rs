//! Detectors, one file each: a plain function from the scene to findings.
//!
//! Their order is that of claims: who knows more about a tensor comes first, who takes what is left
//! comes last. Remarks count nothing and come at the end.

use crate::finding::Finding;
use crate::scene::{Claims, Scene};

mod attention;
mod broadcast;
mod buckets;
mod casts;
mod checkpoint;
mod collectives;
mod copies;
mod duplicates;
mod evaluation;
mod fragmentation;
mod frozen;
mod gradients;
mod growth;
mod inputs;
mod loss;
mod maps;
mod norms;
mod one_hot;
mod parallel;
mod retained;
mod rows;
mod spikes;
mod state;
mod unfold;
mod unused;
mod upsampled;
mod workspace;

/// Ids of all findings that there can be.
pub const IDS: [&str; 28] = [
    "activations",
    "attention-matrices",
    "autocast-casts",
    "buffers",
    "checkpointing-misses",
    "collectives",
    "data-parallel",
    "duplicates",
    "evaluation-with-grad",
    "feature-maps",
    "fragmentation",
    "frozen-layers-save",
    "gradient-buckets",
    "gradients-in-forward",
    "growth",
    "inputs",
    "loss-logits",
    "model-copies",
    "model-state",
    "norms-in-float32",
    "one-hot",
    "optimizer-temporaries",
    "pairwise",
    "retained-graph",
    "unfold",
    "unused-parameters",
    "upsampled-maps",
    "workspace",
];

/// One detector.
pub(crate) type Detect = fn(&Scene<'_>, &mut Claims) -> Vec<Finding>;

/// Those that need no names.
pub(crate) const NAMELESS: [Detect; 1] = [fragmentation::detect];

/// All of them.
pub(crate) const ALL: [Detect; 27] = [
    // Memory that should not be there at all.
    growth::detect,
    retained::detect,
    evaluation::detect,
    parallel::detect,
    buckets::detect,
    unused::detect,
    gradients::detect,
    spikes::detect,
    // Tensors that one operator blows up.
    unfold::detect,
    one_hot::detect,
    attention::detect,
    loss::detect,
    broadcast::detect,
    upsampled::detect,
    // Copies, and scratch memory.
    copies::detect,
    collectives::detect,
    casts::detect,
    workspace::detect,
    // What every training has: maps, rows, the model's state, its inputs.
    maps::detect,
    rows::detect,
    state::detect,
    inputs::detect,
    // Remarks.
    duplicates::detect,
    norms::detect,
    frozen::detect,
    checkpoint::detect,
    fragmentation::detect,
];
