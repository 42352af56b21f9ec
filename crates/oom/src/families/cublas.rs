//! cuBLAS, cuSOLVER, cuSPARSE, cuFFT: status codes of libraries that got no memory or could not start.

use super::{Fact, Family, Memory, Window, no_steps, says};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "cublas",
    speaker: "cuBLAS",
    kind: Kind::Library,
    memory: Memory::Device,
    means: "the library makes its handle and workspace with CUDA when it is first used: the GPU had too little \
            left beside PyTorch's pool",
    facts: &[Fact {
        says: "each handle of cuBLAS and stream has a workspace; `CUBLAS_WORKSPACE_CONFIG` sets its size",
        source: "https://docs.pytorch.org/docs/stable/notes/cuda.html#cublas-workspaces",
    }],
    raises: true,
    heads: &[
        says("cublas_status_alloc_failed"),
        says("cublas_status_not_initialized"),
        says("cublas_status_internal_error"),
        says("cusolver_status_alloc_failed"),
        says("cusparse_status_alloc_failed"),
        says("cusparse_status_insufficient_resources"),
        says("cufft_alloc_failed"),
        says("rocblas_status_memory_error"),
    ],
    fill,
    steps: no_steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let names = [
        ("cublas", "cuBLAS"),
        ("cusolver", "cuSOLVER"),
        ("cusparse", "cuSPARSE"),
        ("cufft", "cuFFT"),
        ("rocblas", "rocBLAS"),
    ];
    let name = names.iter().find(|(start, _)| window.head.starts_with(start));
    account.who = name.map_or("cuBLAS", |(_, name)| name).to_owned();
    // A wrong driver or version says so too.
    account.sure =
        !(window.head.ends_with("not_initialized") || window.head.ends_with("internal_error"));
}
