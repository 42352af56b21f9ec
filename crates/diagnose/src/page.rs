//! The reference page of findings and remedies, as Markdown; `docs/reference/findings.md` is this text.

use crate::remedies::TABLE;

/// Every id a finding can have, and when it is found. Those marked with a star are remarks: their bytes
/// are counted by others, or lie outside of the allocated peak.
#[rustfmt::skip]
pub const FINDINGS: [(&str, &str); 28] = [
    ("activations", "What a pass keeps or makes outside of maps: tokens, points, samples, by list of blocks or topmost module."),
    ("attention-matrices", "The result of a softmax over tokens is written out, in a module for attention or multiplied with values later; with scores, masks and gradients of the same size in the same module. It says why no fused kernel was taken."),
    ("autocast-casts", "Weights that autocast has cast and that their layer's backward pass needs."),
    ("buffers", "Buffers of modules."),
    ("checkpointing-misses *", "A module has a switch for checkpointing that is on, and it did not run again in the backward pass; or most of what is kept lies where nothing runs again."),
    ("collectives", "Over several ranks: weights that are gathered for use, and buffers of collectives."),
    ("data-parallel", "Replicas and gathered results of `nn.DataParallel`."),
    ("duplicates *", "A copy (clone, contiguous, cat, a cast) whose source is alive too. A view is no copy."),
    ("evaluation-with-grad", "The peak is in an evaluation that builds a graph, and no backward pass follows."),
    ("feature-maps", "Maps of convolutional networks by their size: inputs of convolutions, norm layers, activation functions; gradients of such maps on their way."),
    ("fragmentation *", "Reserved by PyTorch beyond what its tensors take, if it is 5 % or more and at least 4 MiB."),
    ("frozen-layers-save *", "Activations that only layers without trainable parameters keep."),
    ("gradient-buckets", "Buckets of `DistributedDataParallel`: a second set of gradients."),
    ("gradients-in-forward", "Gradients that are alive under a forward pass: of the last step (the place of `zero_grad`), or of earlier batches of this one (accumulation)."),
    ("growth", "What is alive at the same point of each step becomes more with every step; with the reference that holds it."),
    ("inputs", "What the script brings to the card."),
    ("loss-logits", "Logits over 1,000 classes or more, their log-softmax, casts and gradients."),
    ("model-copies", "Tensors of the parameters' shapes that no optimizer trains: averages, teachers."),
    ("model-state", "Weights, gradients and the optimizer's state."),
    ("norms-in-float32 *", "Under autocast: float32 inputs and results of norm layers that are kept."),
    ("one-hot", "Results of `one_hot`, and casts of them."),
    ("optimizer-temporaries", "The peak is in the optimizer's step: what it makes besides its state."),
    ("pairwise", "A result of two tensors spread over each other that is four times as large as either, or of `cdist`."),
    ("retained-graph", "Activations that a finished backward pass has left alive."),
    ("unfold", "Results of `unfold` (im2col), and what has their size in the same module."),
    ("unused-parameters", "Parameters that the optimizer has and no gradient reaches."),
    ("upsampled-maps", "Interpolated maps that are kept for a convolution."),
    ("workspace", "Scratch memory of cuDNN, cuBLAS and their like that is handed out at the peak."),
];

/// The page.
pub fn page() -> String {
    let mut page = String::from(
        "# Findings and remedies\n\n\
         Generated from `crates/diagnose`. A finding names the bytes at the allocated peak that it \
         explains; each tensor is counted once, and what is less than 1 % of the peak is left to the next \
         finding. Those with a star are remarks: others count their bytes, or they lie outside of that \
         peak. Remedies are not tried when they are named; `fathom fit` tries them.\n\n\
         | finding | when |\n| --- | --- |\n",
    );
    for (id, when) in FINDINGS {
        page += &format!(
            "| `{}`{} | {when} |\n",
            id.trim_end_matches(" *"),
            if id.ends_with('*') { " *" } else { "" }
        );
    }
    page += "\n| remedy | results | change |\n| --- | --- | --- |\n";
    for (id, label, change) in TABLE {
        page += &format!("| `{id}` | {} | {change} |\n", label.name());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_is_on_the_page() {
        assert_eq!(FINDINGS.map(|(id, _)| id.trim_end_matches(" *")), crate::IDS);
    }
}
