//! Detectors, one file each: a plain function from the scene to findings.
//!
//! A new detector is its file, its row in [`TABLE`], and in `tests/detectors` a case and a near miss.

use crate::finding::Finding;
use crate::knobs::Knobs;
use crate::remedies;
use crate::scene::{Claims, Scene};

pub(crate) mod attention;
mod batches;
mod broadcast;
mod buckets;
mod buffers;
mod casts;
mod checkpoint;
mod collectives;
mod copies;
mod correlation;
mod duplicates;
mod encoders;
mod evaluation;
mod experts;
mod fragmentation;
mod frozen;
mod gated;
mod gradients;
mod graphs;
mod growth;
mod inputs;
mod kept_results;
mod kv_cache;
mod loss;
mod loss_gradients;
mod maps;
mod masks;
mod norms;
mod one_hot;
mod parallel;
mod retained;
mod rows;
mod scattered;
mod spikes;
mod state;
mod unfold;
mod untrained;
mod unused;
mod upsampled;
mod workspace;
mod written_out;

/// A detector: its row is all that is said of it outside of its file.
#[derive(Clone, Copy, Debug)]
pub struct Detector {
    /// That of its findings.
    pub id: &'static str,
    /// When it finds something, for the reference.
    pub when: &'static str,
    /// Others count the bytes of its findings, or they lie outside of the allocated peak.
    pub is_remark: bool,
    /// Where nobody gave names, as in snapshots, it can tell nothing.
    needs_names: bool,
    detect: Detect,
}

type Detect = fn(&Scene<'_>, &mut Claims) -> Vec<Finding>;

/// All of them, in the order of claims: who knows more about a tensor comes first, who takes what is left
/// comes last. Remarks claim nothing and come at the end.
#[rustfmt::skip]
pub const TABLE: &[Detector] = &[
    // Memory that should not be there at all.
    counted("growth", growth::detect, "What is alive at the same point of each step becomes more with every step; with the reference that holds it."),
    counted("retained-graph", retained::detect, "Activations that a finished backward pass has left alive."),
    counted("evaluation-with-grad", evaluation::detect, "The peak is in an evaluation that builds a graph, and no backward pass follows."),
    counted("untrained-graph", untrained::detect, "Activations that are kept for parameters which may have gradients, and which no optimizer has: an encoder, a teacher or a body without `no_grad` or `requires_grad_(False)`."),
    counted("data-parallel", parallel::detect, "Replicas and gathered results of `nn.DataParallel`."),
    counted("gradient-buckets", buckets::detect, "Buckets of `DistributedDataParallel`: a second set of gradients."),
    counted("unused-parameters", unused::detect, "Parameters that the optimizer has and no gradient reaches."),
    counted("gradients-in-forward", gradients::detect, "Gradients that are alive under a forward pass: of the last step (the place of `zero_grad`), or of earlier batches of this one (accumulation)."),
    counted("optimizer-temporaries", spikes::detect, "The peak is in the optimizer's step: what it makes besides its state."),
    // Tensors that one operator blows up.
    counted("unfold", unfold::detect, "Results of `unfold` (im2col), and what has their size in the same module."),
    counted("one-hot", one_hot::detect, "Results of `one_hot`, and casts of them."),
    counted("expert-padding", experts::detect, "Mixtures of experts: buffers of experts × places, where a router spreads fewer tokens than there are places."),
    counted("correlation-volume", correlation::detect, "Every position of one map by every position of another, and its pyramid."),
    counted("scattered-grid", scattered::detect, "A grid of zeros into which points are written by their index, with at least four places for each."),
    counted("attention-matrices", attention::detect, "The result of a softmax over tokens is written out, in a module for attention or multiplied with values later; with scores, masks and gradients of the same size in the same module. It says why no fused kernel was taken."),
    counted("attention-masks", masks::detect, "A mask with a number for each pair of tokens that autograd keeps for attention."),
    counted("loss-gradients", loss_gradients::detect, "A loss that computes its gradients in chunks in the forward pass, and keeps that of its head."),
    counted("loss-logits", loss::detect, "Logits over 1,000 classes or more, their log-softmax, casts and gradients."),
    counted("written-in-python", written_out::detect, "A module that is called like an activation function or a norm and computes its formula step by step: autograd keeps two tensors or more of the size of its input, where a fused function keeps one."),
    counted("gated-layers", gated::detect, "SwiGLU and its like: a function such as SiLU of one half, times the other half; what autograd keeps of both, and their product."),
    counted("pairwise", broadcast::detect, "A result of two tensors broadcast against each other that is four times as large as either, of `cdist`, or of a product of points by points, and of sorting one."),
    counted("upsampled-maps", upsampled::detect, "Interpolated maps that are kept for a convolution."),
    counted("kv-cache", kv_cache::detect, "Keys and values of earlier tokens that inference keeps: in caches of transformers, in tensors of modules that are called so, or joined with those of the next token by `cat`. It says what a token costs, and how long a context the GPU has room for."),
    counted("kept-results", kept_results::detect, "Results of modules that something of Python's still refers to, though no backward pass needs them: in a backward pass or an optimizer's step, or under a forward pass those of at least three modules that have returned, and those of the last step."),
    // Copies, and scratch memory.
    counted("model-copies", copies::detect, "Tensors of the parameters' shapes that no optimizer trains: averages, teachers."),
    counted("collectives", collectives::detect, "Over several ranks: weights that are gathered for use, and buffers of collectives."),
    counted("autocast-casts", casts::detect, "Weights that autocast has cast and that their layer's backward pass needs."),
    counted("workspace", workspace::detect, "Scratch memory of cuDNN, cuBLAS and their like that is handed out at the peak."),
    counted("batches-at-once", batches::detect, "Inputs of the same line and shape that were brought in several steps, and are there at once."),
    // What every training has: maps, rows, the model's state, its inputs.
    counted("feature-maps", maps::detect, "Maps of convolutional networks by their size: inputs of convolutions, norm layers, activation functions; gradients in flight."),
    counted("activations", rows::detect, "What a pass keeps or makes outside of maps: tokens, points, samples, by list of blocks or topmost module."),
    counted("model-state", state::detect, "Weights, gradients and the optimizer's state."),
    counted("inputs", inputs::detect, "What the script brings to the card."),
    counted("buffers", buffers::detect, "Buffers of modules."),
    // Remarks.
    remark("duplicates", duplicates::detect, "A copy (clone, contiguous, cat, a cast) whose original is still in memory. A view is no copy."),
    remark("norms-in-float32", norms::detect, "Under autocast: float32 inputs and results of norm layers that are kept."),
    remark("frozen-layers-save", frozen::detect, "Activations that only layers without trainable parameters keep."),
    remark("encoder-in-step", encoders::detect, "The peak of a training is in the forward pass of a model, or of a part right below the model, that is not trained and through which no gradient flows."),
    remark("checkpointing-misses", checkpoint::detect, "A module has a switch for checkpointing that is on, and it did not run again in the backward pass; or most of what is kept lies where nothing runs again."),
    Detector { needs_names: false, ..remark("cuda-graphs", graphs::detect, "Private pools at the peak of reserved memory: what CUDA graphs hold for themselves.") },
    Detector { needs_names: false, ..remark("fragmentation", fragmentation::detect, "PyTorch's cache and fragmentation: reserved and not used by tensors, if it is 5 % or more and at least 4 MiB.") },
];

/// Its findings explain bytes of the peak that no other counts.
const fn counted(id: &'static str, detect: Detect, when: &'static str) -> Detector {
    Detector { id, when, is_remark: false, needs_names: true, detect }
}

const fn remark(id: &'static str, detect: Detect, when: &'static str) -> Detector {
    Detector { is_remark: true, ..counted(id, detect, when) }
}

/// What all of them find, in their order.
pub(crate) fn detect(scene: &Scene<'_>) -> Vec<Finding> {
    let mut claims = Claims::new(scene);
    let mut findings: Vec<Finding> = Vec::new();
    let can_tell = |row: &&Detector| scene.anatomy.has_names || !row.needs_names;
    for row in TABLE.iter().filter(can_tell) {
        let found = (row.detect)(scene, &mut claims).into_iter();
        findings.extend(found.map(|it| Finding { id: row.id, counted: !row.is_remark, ..it }));
    }
    let knobs = Knobs::of(scene);
    for finding in findings.iter_mut().filter(|finding| finding.counted && finding.note.is_empty())
    {
        finding.note = knobs.sentence(finding).unwrap_or_default();
    }
    for finding in &mut findings {
        finding.remedies = remedies::that_apply(scene, std::mem::take(&mut finding.remedies));
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::TABLE;

    #[test]
    fn each_detector_has_an_id_of_its_own() {
        let ids: BTreeSet<&str> = TABLE.iter().map(|row| row.id).collect();
        assert_eq!(ids.len(), TABLE.len());
    }

    #[test]
    fn remarks_come_last() {
        assert!(TABLE.iter().is_sorted_by_key(|row| row.is_remark));
    }
}
