//! CUDA itself refused: `CUDA error: out of memory`, in whose words it ever comes.

use super::{Fact, Family, Head, Memory, Window, also, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "cuda_error",
    speaker: "CUDA",
    kind: Kind::CudaError,
    memory: Memory::Device,
    means: "CUDA itself refused a call and gave no numbers: the GPU was full, or had no room for a context, a kernel \
            or a library. At the first call of a program others have the GPU; later, most often this program's own pool",
    facts: &[Fact {
        says: "errors of kernels are reported late: `CUDA_LAUNCH_BLOCKING=1` makes the traceback right",
        source: "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
    }],
    raises: true,
    heads: &[
        also("cudaerror:outofmemory", 160),
        also("cudadrivererror:outofmemory", 160),
        // CTranslate2, tiny-cuda-nn and whoever writes which call failed.
        also("failedwitherroroutofmemory", 160),
        also("failedwitherror:'outofmemory", 160),
        also("cudafailedwitherror2outofmemory", 160),
        also("cudamallocfailed:outofmemory", 300),
        also("cudafailure2:outofmemory", 160),
        also("cudaruntimeerror:outofmemory", 160),
        // TensorRT-LLM, PyCUDA, MXNet.
        Head {
            words: "cudaruntimeerrorin",
            near: 160,
            fits: |place| place.near(160).contains("outofmemory"),
        },
        also("cumemallocfailed:outofmemory", 160),
        also("cudamallocretryfailed:outofmemory", 160),
        // MXNet and DGL.
        also("cuda:outofmemory", 160),
        also("cuda_error_out_of_memory", 320),
        also("cudaerrormemoryallocation", 330),
    ],
    fill,
    steps: |_| vec![step("who has the GPU now", "nvidia-smi")],
};

fn fill(account: &mut Account, window: &Window<'_>) {
    // The loader's thread that pins batches asks for memory of the host.
    if window.before.ends_with("failedtopinmemory:runtimeerror:") {
        account.memory = Memory::Host;
    }
}
