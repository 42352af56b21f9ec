//! What an operator of the forward pass, or a node of the backward pass, is for.

/// Kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Role {
    Convolution,
    /// Batch, group or instance norm: of maps.
    MapNorm,
    /// Layer norm and its like: of rows.
    RowNorm,
    /// ReLU, GELU, dropout and their like.
    Function,
    Pool,
    Linear,
    /// One that keeps no matrix.
    FusedAttention,
    Softmax,
    /// A loss over classes: its logits have one number for each.
    ClassLoss,
    Loss,
    Upsample,
    Unfold,
    /// What a checkpoint computes its block from again.
    Checkpoint,
    Copy,
    Arithmetic,
    Other,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Convolution => "convolutions",
            Role::MapNorm | Role::RowNorm => "norm layers",
            Role::Function => "activation functions and dropout",
            Role::Pool => "pooling",
            Role::Linear => "matrix products",
            Role::FusedAttention => "fused attention",
            Role::Softmax => "softmax",
            Role::ClassLoss | Role::Loss => "losses",
            Role::Upsample => "interpolation",
            Role::Unfold => "unfolding",
            Role::Checkpoint => "inputs of checkpoints",
            Role::Copy => "copies",
            Role::Arithmetic => "arithmetic",
            Role::Other => "other functions",
        }
    }

    /// Works on maps: batch, channels, and then space.
    pub(crate) fn is_of_maps(self) -> bool {
        matches!(self, Role::Convolution | Role::MapNorm | Role::Pool | Role::Upsample)
    }
}

/// Parts of names, lower case, without underscores; the first that a name contains decides.
#[rustfmt::skip]
const WORDS: [(Role, &[&str]); 16] = [
    (Role::Checkpoint, &["checkpoint"]),
    (Role::Other, &["scatter", "gather", "index", "embedding", "onehot"]),
    (Role::FusedAttention, &["scaleddotproduct", "flashattention", "efficientattention", "memoryefficient"]),
    (Role::Loss, &["binarycrossentropy", "mseloss", "l1loss", "huberloss", "kldiv", "bceloss"]),
    (Role::ClassLoss, &["logsoftmax", "crossentropy", "nllloss", "ctcloss"]),
    (Role::Softmax, &["softmax"]),
    (Role::MapNorm, &["batchnorm", "groupnorm", "instancenorm"]),
    (Role::RowNorm, &["layernorm", "rmsnorm", "weightnorm"]),
    (Role::Unfold, &["im2col", "col2im", "unfold"]),
    (Role::Convolution, &["conv"]),
    (Role::Pool, &["pool"]),
    (Role::Upsample, &["upsample", "interpolate", "gridsample", "pixelshuffle"]),
    (Role::Function, &["relu", "gelu", "silu", "sigmoid", "tanh", "elu", "mish", "softplus", "hardswish", "glu", "prelu", "threshold", "dropout", "softsign"]),
    (Role::Linear, &["addmm", "baddbmm", "bmm", "linear", "matmul", "einsum", "addmv"]),
    (Role::Copy, &["clone", "contiguous", "cat", "stack", "tocopy", "copy", "repeat", "float", "half", "bfloat16", "reshape", "flatten", "pad", "roll"]),
    (Role::Arithmetic, &["add", "sub", "mul", "div", "pow", "sqrt", "exp", "log", "abs", "max", "min", "where", "masked", "sum", "mean", "neg", "sin", "cos", "square", "norm", "lerp"]),
];

/// Names that are a role as a whole.
const WHOLE: [(&str, Role); 3] = [("mm", Role::Linear), ("to", Role::Copy), ("type", Role::Copy)];

/// The role of an operator such as `conv2d`, or of a node such as `ConvolutionBackward0`.
pub(crate) fn role(name: &str) -> Role {
    // Of several that the compiler has fused, the one that says most.
    let name = name.split(" (").next().unwrap_or_default();
    let plain: String =
        name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect();
    let plain = plain.trim_end_matches(|c: char| c.is_ascii_digit());
    let plain = plain.strip_suffix("backward").unwrap_or(plain);
    let whole = WHOLE.iter().find(|(word, _)| *word == plain).map(|(_, role)| *role);
    let part = || WORDS.iter().find(|(_, words)| words.iter().any(|word| plain.contains(word)));
    whole.or_else(|| part().map(|(role, _)| *role)).unwrap_or(Role::Other)
}

/// Whether an operator takes most of the time that a network takes: a matrix product, a convolution, fused attention.
pub fn is_product(operator: &str) -> bool {
    matches!(role(operator), Role::Linear | Role::Convolution | Role::FusedAttention)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_and_nodes_have_the_same_roles() {
        for (role_of_both, names) in [
            (Role::Convolution, ["conv2d", "ConvolutionBackward0"]),
            (Role::MapNorm, ["batch_norm", "CudnnBatchNormBackward0"]),
            (Role::RowNorm, ["layer_norm", "NativeLayerNormBackward0"]),
            (Role::Softmax, ["softmax", "SoftmaxBackward0"]),
            (Role::ClassLoss, ["log_softmax", "NllLoss2DBackward0"]),
            (Role::Loss, ["mse_loss", "BinaryCrossEntropyWithLogitsBackward0"]),
            (
                Role::FusedAttention,
                ["scaled_dot_product_attention", "ScaledDotProductFlashAttentionBackward0"],
            ),
            (Role::Linear, ["linear", "MmBackward0"]),
            (Role::Linear, ["bmm", "AddmmBackward0"]),
            (Role::Function, ["gelu", "ReluBackward0"]),
            (Role::Function, ["dropout", "NativeDropoutBackward0"]),
            (Role::Upsample, ["interpolate", "UpsampleNearest2DBackward0"]),
            (Role::Unfold, ["im2col", "Im2ColBackward0"]),
            (Role::Copy, ["cat", "ToCopyBackward0"]),
            (Role::Arithmetic, ["sub", "PowBackward0"]),
            (Role::Other, ["embedding", "IndexBackward0"]),
            (Role::Other, ["one_hot", "ScatterReduceBackward0"]),
        ] {
            for name in names {
                assert_eq!(role(name), role_of_both, "{name}");
            }
        }
    }
}
