//! FlashInfer, inside of SGLang and vLLM: its workspace, a buffer of fixed size, is too small for a batch.

use super::{Fact, Family, Head, Memory, Window, reading, step};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "flashinfer",
    speaker: "FlashInfer",
    kind: Kind::Server,
    memory: Memory::Device,
    means: "FlashInfer takes scratch memory from a workspace of fixed size, which the server made at its start: this \
            batch wants more than that. How full the GPU is does not matter",
    facts: &[Fact {
        says: "when request rates were high a batch did not fit into the workspace: it needs to be larger, or batches smaller",
        source: "https://github.com/sgl-project/sglang/issues/2102",
    }],
    raises: true,
    heads: &[Head {
        words: "failedtoallocatememoryfor",
        near: 0,
        fits: |place| place.near(200).contains("inalignedallocator"),
    }],
    fill,
    steps: |_| {
        vec![step(
            "fewer tokens in one batch",
            "python -m sglang.launch_server --model-path MODEL --chunked-prefill-size 2048 --max-running-requests 16",
        )]
    },
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.cause = Some(Cause::Limit);
    account.figures.tried = reading::bytes(window.text, "withsize");
}
