//! cuDNN and MIOpen: workspaces of convolutions, and codes behind which memory is only one reason.

use super::{Fact, Family, Memory, Window, no_steps, says};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "cudnn",
    speaker: "cuDNN",
    kind: Kind::Library,
    memory: Memory::Device,
    means: "cuDNN makes its handle with CUDA, and each algorithm wants a workspace: with too little left on the GPU \
            no algorithm fits",
    facts: &[Fact {
        says: "a run that was truly out of memory was reported as `CUDNN_STATUS_NOT_SUPPORTED`; a non-contiguous \
               input and a wrong version are so too",
        source: "https://github.com/pytorch/pytorch/issues/44473",
    }],
    raises: true,
    heads: &[
        says("cudnn_status_alloc_failed"),
        says("cudnn_status_not_initialized"),
        says("cudnn_status_not_supported"),
        says("cudnn_status_internal_error"),
        says("unabletofindavalidcudnnalgorithm"),
        says("unabletofindanenginetoexecutethiscomputation"),
        says("miopenstatusallocfailed"),
    ],
    fill,
    steps: no_steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.who = if window.head.starts_with("miopen") { "MIOpen" } else { "cuDNN" }.to_owned();
    account.sure = window.head.ends_with("alloc_failed") || window.head.ends_with("allocfailed");
}
