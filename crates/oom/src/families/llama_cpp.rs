//! llama.cpp and ggml: `allocating 9866.00 MiB on device 1: cudaMalloc failed`, of CUDA, Vulkan, Metal and the host.

use super::{Fact, Family, Head, Memory, Window, also, reading, says, step};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "llama_cpp",
    speaker: "llama.cpp",
    kind: Kind::Server,
    memory: Memory::Device,
    means: "one buffer (weights, KV cache or compute) did not fit into what the GPU had left; how much that was is not \
            in the message",
    facts: &[Fact {
        says: "the refusal is CUDA's; it can also come when the machine's own memory is low",
        source: "https://github.com/ggml-org/llama.cpp/issues/7366",
    }],
    raises: false,
    heads: &[
        says("ggml_backend_cuda_buffer_type_alloc_buffer:allocating"),
        says("ggml_vulkan:devicememoryallocationofsize"),
        Head {
            words: "cudaerror:outofmemory",
            near: 0,
            fits: |place| place.near(200).contains("ggml"),
        },
        says("failedtoallocatebuffer,size="),
        says("requestedbuffersizeexceedsdevicebuffersizelimit"),
        also("erroroutofdevicememory", 120),
        says("ggml_aligned_malloc:insufficientmemory"),
        says("ggml_cuda_host_malloc:failedtoallocate"),
        also("ggml_gallocr_reserve_n", 400),
        also("alloc_tensor_range:failedtoallocate", 400),
        also("unabletoallocatecuda", 600),
        also("unabletoallocatebackendbuffer", 600),
        also("failedtoallocatebufferforkvcache", 600),
        also("failedtoallocatecomputebuffers", 800),
    ],
    fill,
    steps: |account| match account.memory {
        Memory::Host => vec![step("what the machine has left", "free -h")],
        _ => vec![
            step(
                "fewer layers on the GPU, a shorter context",
                "llama-server -m MODEL -ngl 20 -c 4096",
            ),
            step("who else has the GPU", "nvidia-smi"),
        ],
    },
};

fn fill(account: &mut Account, window: &Window<'_>) {
    buffer(account, window.text);
    if window.head.starts_with("requestedbuffersize") {
        account.cause = Some(Cause::RequestTooLarge);
    }
    if window.head.starts_with("ggml_aligned") || window.head.starts_with("ggml_cuda_host") {
        account.memory = Memory::Host;
        account.figures.tried = reading::behind(window.text, "attemptedtoallocate")
            .or_else(|| reading::behind(window.text, "failedtoallocate"));
    }
    if window.head.starts_with("ggml_cuda_host") {
        account.cause = Some(Cause::Warning);
    }
}

/// The buffer that was asked for: to the byte, where a line says so.
pub(super) fn buffer(account: &mut Account, text: &str) {
    account.figures.tried = reading::bytes(text, "bufferofsize")
        .or_else(|| reading::bytes(text, "memoryallocationofsize"))
        .or_else(|| reading::behind(text, "failedtoallocatebuffer,size="))
        .or_else(|| reading::behind(text, "allocating"));
    account.device = reading::ordinal(text, "ondevice").or_else(|| {
        let named = ["failedtoallocatecuda", "unabletoallocatecuda", "failedtoallocatevulkan"];
        named.iter().find_map(|words| reading::ordinal(text, words))
    });
}
