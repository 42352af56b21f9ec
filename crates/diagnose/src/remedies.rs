//! What may be done, and how far each changes results. Nothing here has been tried: `fit` tries.

use crate::label::Label;
use crate::scene::Scene;
use crate::words::is_spread;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The lever's name, where there is one that can try it.
    pub id: &'static str,
    /// How far it changes results.
    pub label: Label,
    /// What to change.
    pub change: String,
}

/// Remedies by id: how far they go, and in general what to change.
#[rustfmt::skip]
pub(crate) const TABLE: [(&str, Label, &str); 29] = [
    ("accumulate", Label::ChangesStatistics, "smaller batches with gradient accumulation: batch norm then sees the small ones"),
    ("allocator", Label::Exact, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
    ("amp-bf16", Label::ChangesNumerics, "torch.autocast(\"cuda\", torch.bfloat16)"),
    ("batch", Label::ChangesStatistics, "a smaller batch"),
    ("bucket-view", Label::Exact, "DistributedDataParallel(…, gradient_as_bucket_view=True)"),
    ("channels-last", Label::NumericallyEqual, "model.to(memory_format=torch.channels_last): other convolution kernels, other workspaces"),
    ("checkpoint", Label::NumericallyEqual, "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"),
    ("chunked-cross-entropy", Label::NumericallyEqual, "logits and loss in chunks of rows, each recomputed in its backward pass"),
    ("conv-before-upsampling", Label::ChangesFunction, "convolve at the small size and enlarge the result"),
    ("cudnn-benchmark", Label::NumericallyEqual, "torch.backends.cudnn.benchmark = False"),
    ("detach", Label::Exact, "keep numbers, not graphs: loss.item() or loss.detach()"),
    ("depthwise-gate", Label::ChangesFunction, "a depthwise convolution over the same window: kernel² parameters a channel more, the same receptive field, but no softmax over neighbours"),
    ("distributed", Label::NumericallyEqual, "DistributedDataParallel, one process a card"),
    ("ema-cpu", Label::Exact, "keep the averaged copy on the CPU, or update it every few steps"),
    ("freeze", Label::ChangesTraining, "requires_grad_(False) and torch.no_grad() around the part that is not trained"),
    ("fused-attention", Label::NumericallyEqual, "F.scaled_dot_product_attention: keeps no matrix"),
    ("fused-optimizer", Label::NumericallyEqual, "fused=True: the step needs no lists of temporaries"),
    ("half-frozen", Label::ChangesNumerics, "frozen parts in bfloat16"),
    ("indices", Label::Exact, "class indices instead of one-hot vectors: an embedding, or cross_entropy with indices"),
    ("inputs", Label::ChangesFunction, "smaller or fewer inputs: resolution, frames, points"),
    ("no-foreach", Label::Exact, "foreach=False: one parameter at a time"),
    ("no-grad", Label::Exact, "with torch.no_grad(): around the evaluation"),
    ("no-retain", Label::Exact, "backward() without retain_graph, or one backward pass over the sum of losses"),
    ("offload", Label::Exact, "torch.autograd.graph.save_on_cpu(pin_memory=True)"),
    ("remove-copy", Label::Exact, "do without the copy, or drop its source: work in place, keep one dtype, write into the joined tensor"),
    ("remove-unused", Label::Exact, "remove parameters that no gradient reaches"),
    ("tiles", Label::NumericallyEqual, "in tiles of rows, or torch.cdist with its own backward pass"),
    ("whole-checkpoint", Label::NumericallyEqual, "checkpoint the modules that the switch does not reach"),
    ("zero-grad", Label::Exact, "optimizer.zero_grad(set_to_none=True) right after optimizer.step()"),
];

/// What may be done about activations. Checkpointing brings back what one block keeps: it helps where
/// many blocks keep a little each.
pub(crate) fn of_activations(scene: &Scene<'_>, saved: &[usize]) -> Vec<Remedy> {
    let mut ids = Vec::new();
    if is_spread(scene, saved) {
        ids.push("checkpoint");
    }
    if scene.anatomy.facts.of("autocast").is_empty() && !are_half(scene, saved) {
        ids.push("amp-bf16");
    }
    ids.extend(["batch", "accumulate", "inputs"]);
    let mut found = remedies(&ids);
    if !has_batch_norm(scene) {
        let accumulate = found.iter_mut().filter(|remedy| remedy.id == "accumulate");
        accumulate.for_each(|remedy| *remedy = accumulate_without_batch_norm());
    }
    found
}

/// Most of them take two bytes an element already, by whatever has cast them.
fn are_half(scene: &Scene<'_>, members: &[usize]) -> bool {
    let is_half = |index: &usize| {
        matches!(scene.things[*index].tensor.dtype.as_str(), "bfloat16" | "float16")
    };
    let half: Vec<usize> = members.iter().copied().filter(is_half).collect();
    scene.bytes(members) < 2 * scene.bytes(&half)
}

fn has_batch_norm(scene: &Scene<'_>) -> bool {
    scene.anatomy.modules.iter().any(|(_, class)| class.contains("BatchNorm"))
}

fn accumulate_without_batch_norm() -> Remedy {
    Remedy {
        id: "accumulate",
        label: Label::NumericallyEqual,
        change: "smaller batches with gradient accumulation".to_owned(),
    }
}

/// Remedies of the table.
pub(crate) fn remedies(ids: &[&str]) -> Vec<Remedy> {
    let known = |id: &&str| {
        let (id, label, change) = TABLE.iter().find(|(other, ..)| other == id)?;
        Some(Remedy { id, label: *label, change: (*change).to_owned() })
    };
    let found: Vec<Remedy> = ids.iter().filter_map(known).collect();
    debug_assert_eq!(found.len(), ids.len(), "{ids:?}");
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_is_there_once() {
        let mut ids: Vec<&str> = TABLE.iter().map(|(id, ..)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), TABLE.len());
    }
}
