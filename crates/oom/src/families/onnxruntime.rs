//! ONNX Runtime: `BFCArena::AllocateRawInternal … Failed to allocate memory for requested buffer of size 8388608000`.

use super::{Fact, Family, Memory, Window, reading, says, step};
use crate::account::{Account, Kind};

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
