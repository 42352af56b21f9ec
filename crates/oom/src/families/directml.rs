//! PyTorch on DirectML, Microsoft's way to GPUs of any maker.

use super::{Fact, Family, Head, Memory, Step, Window, nothing, reading, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "directml",
    speaker: "PyTorch (DirectML)",
    kind: Kind::Library,
    memory: Memory::Device,
    means: "DirectML had no room for this tensor; how much was left and who had the rest is not in the message",
    facts: &[],
    raises: true,
    heads: &[Head {
        words: "couldnotallocatetensorwith",
        near: 0,
        fits: |place| place.near(100).contains("gpuvideomemory"),
    }],
    fill,
    steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.figures.tried = reading::bytes(window.text, window.head);
}

/// TensorFlow's words, whose advice is for CUDA.
pub(super) const TENSORFLOW: Family = Family {
    id: "tensorflow_directml",
    speaker: "TensorFlow (DirectML)",
    kind: Kind::TensorFlow,
    memory: Memory::Device,
    means: "its allocator had no room for this tensor; how much was left is not in the message",
    facts: &[Fact {
        says: "models that fit with CUDA may not fit here: a smaller batch, or smaller images",
        source: "https://github.com/microsoft/DirectML/issues/34",
    }],
    raises: true,
    // Found by `tensorflow`, which looks at the device.
    heads: &[],
    fill: nothing,
    steps,
};

fn steps(_: &Account) -> Vec<Step> {
    let counters = r"powershell Get-Counter '\GPU Process Memory(*)\Dedicated Usage'";
    vec![step("who has the GPU", counters)]
}
