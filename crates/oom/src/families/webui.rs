//! Stable Diffusion web UI: its attention counts before it asks, and refuses by itself.

use super::{Family, Head, Memory, Window, no_steps, reading};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "webui",
    speaker: "the web UI's attention",
    kind: Kind::Library,
    memory: Memory::Device,
    means: "the web UI splits attention into up to 64 steps, and one step still wants more than PyTorch and the GPU had \
            left together. Attention of xformers or PyTorch (`--xformers`, `--opt-sdp-attention`) needs no such tensor",
    facts: &[],
    raises: true,
    heads: &[Head {
        words: "notenoughmemory,uselowerresolution",
        near: 0,
        fits: |place| place.near(160).contains("need:"),
    }],
    fill,
    steps: no_steps,
};

/// `Need: 1.5GB free, Have:0.1GB free`
fn fill(account: &mut Account, window: &Window<'_>) {
    account.figures.tried = reading::behind(window.text, "need:");
    account.figures.free = reading::behind(window.text, "have:");
}
