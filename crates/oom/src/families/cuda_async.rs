//! PyTorch with `cudaMallocAsync` as its allocator, which is ComfyUI's default.
//!
//! Some versions of torch end the text behind `Allocation on device`, and with it all numbers.

use super::{Fact, Family, Memory, reading, says, step};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "cuda_async",
    speaker: "PyTorch (cudaMallocAsync)",
    kind: Kind::Cuda,
    memory: Memory::Device,
    means: "PyTorch asked CUDA's own pool (`cudaMallocAsync`, ComfyUI's default), and the GPU had too \
            little left; this form of the message drops its numbers",
    facts: &[Fact {
        says: "in ComfyUI `--disable-cuda-malloc` goes back to PyTorch's own allocator, whose message has numbers; \
               `--lowvram` keeps less of the model on the GPU",
        source: "https://github.com/Comfy-Org/ComfyUI/blob/master/comfy/cli_args.py",
    }],
    raises: true,
    heads: &[says("allocationondevice")],
    fill: reading::caching_allocator,
    steps: |account| match account.figures.tried {
        Some(_) => Vec::new(),
        None => vec![step("to see the numbers", "python main.py --disable-cuda-malloc")],
    },
};
