//! ONNX Runtime: `BFCArena::AllocateRawInternal … Failed to allocate memory for requested buffer of size 8388608000`.

use super::{Fact, Family, Head, Memory, Window, reading, says, step};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "onnxruntime",
    speaker: "ONNX Runtime",
    kind: Kind::Framework,
    memory: Memory::NotTold,
    means: "its arena could not grow that far; the message does not say whether the GPU's or the host's: it is the \
            memory of the provider that runs this node",
    facts: &[Fact {
        says: "`arena_extend_strategy=kSameAsRequested` and `cudnn_conv_use_max_workspace=0` take less",
        source: "https://github.com/microsoft/onnxruntime/issues/16307",
    }],
    raises: true,
    heads: &[says("failedtoallocatememoryforrequestedbufferofsize")],
    fill,
    steps: |_| vec![step("what the GPU and the machine have left", "nvidia-smi && free -h")],
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.figures.tried = reading::bytes(window.text, window.head);
}

/// `Available memory of 0 is smaller than requested bytes of 2048`: the arena has a limit.
pub(super) const LIMIT: Family = Family {
    id: "onnxruntime_limit",
    speaker: "ONNX Runtime",
    kind: Kind::Framework,
    memory: Memory::NotTold,
    means: "its arena was given a limit (`gpu_mem_limit`, or `max_mem` of the host's) and has so much left under it; neither \
            the GPU nor the machine need be full",
    facts: &[Fact {
        says: "`gpu_mem_limit` is the most that the arena of a GPU may take; other memory of the GPU is not counted in it",
        source: "https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html",
    }],
    raises: true,
    heads: &[Head {
        words: "availablememoryof",
        near: 0,
        fits: |place| place.near(80).contains("issmallerthanrequestedbytesof"),
    }],
    fill: |account, window| {
        account.cause = Some(Cause::Limit);
        account.figures.free = reading::bytes(window.text, window.head);
        account.figures.tried = reading::bytes(window.text, "requestedbytesof");
    },
    steps: |_| vec![step("where the limit is set", "grep -rn 'gpu_mem_limit\\|max_mem' .")],
};
