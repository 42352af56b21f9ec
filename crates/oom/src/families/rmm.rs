//! RAPIDS: cuDF, cuML and others take memory through RMM.

use super::{Fact, Family, Head, Memory, Window, reading, says, step};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "rmm",
    speaker: "RAPIDS (RMM)",
    kind: Kind::Framework,
    memory: Memory::Device,
    means: "cuDF, cuML and others ask CUDA through RMM: the GPU had too little left, or RMM's pool reached its limit. Each \
            notebook and process has memory of its own there",
    facts: &[Fact {
        says: "with `CUDF_SPILL=on` cuDF moves buffers to the host when the GPU is full",
        source: "https://docs.rapids.ai/api/cudf/stable/developer_guide/library_design/",
    }],
    raises: true,
    heads: &[
        Head { words: "bad_alloc:out_of_memory:", near: 0, fits: |place| is_rmm(place.near(400)) },
        Head { words: "bad_alloc:cudaerrorat:", near: 0, fits: |place| is_rmm(place.near(400)) },
        says("rmm_error_out_of_memory"),
        Head { words: "maximumpoolsizeexceeded", near: 400, fits: |_| true },
    ],
    fill,
    steps: |account| match account.cause {
        Some(Cause::NotMemory) => vec![step("which call it was", "CUDA_LAUNCH_BLOCKING=1 COMMAND")],
        _ => vec![
            step("who has the GPU", "nvidia-smi"),
            step("with the host behind it", "CUDF_SPILL=on COMMAND"),
        ],
    },
};

fn is_rmm(text: &str) -> bool {
    text.contains("rmm")
}

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text.get(..400.min(window.text.len())).unwrap_or_default();
    account.figures.tried = reading::behind(text, "failedtoallocate");
    // RMM raises this for every error that a call for memory reports, also one of an earlier kernel.
    if text.contains("illegaladdress") || text.contains("illegalmemoryaccess") {
        account.sure = false;
        account.cause = Some(Cause::NotMemory);
    }
}
