//! llama.cpp and ggml: `allocating 9866.00 MiB on device 1: cudaMalloc failed`, of CUDA, ROCm, Metal and the host.

use super::{Fact, Family, Head, Memory, Step, Window, also, reading, says, step};
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
        says: "the refusal is the driver's; it can also come when the machine's own memory is low",
        source: "https://github.com/ggml-org/llama.cpp/issues/7366",
    }],
    raises: false,
    heads: &[
        says("ggml_backend_cuda_buffer_type_alloc_buffer:allocating"),
        says("ggml_backend_cpu_buffer_type_alloc_buffer:failedtoallocate"),
        Head {
            words: "cudaerror:outofmemory",
            near: 0,
            fits: |place| place.near(200).contains("ggml"),
        },
        says("failedtoallocatebuffer,size="),
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
    steps,
};

/// What one batch needs while it is computed: taken last, beside weights and caches.
pub(super) const COMPUTE: Family = Family {
    id: "llama_cpp_compute",
    speaker: "llama.cpp",
    kind: Kind::Server,
    memory: Memory::Device,
    means: "its compute buffer, the scratch memory of one batch, did not fit beside weights and KV cache into what the \
            GPU had left; how much that was is not in the message",
    facts: &[Fact {
        says: "a smaller `--ubatch-size` and flash attention make the compute buffer smaller; it cannot be split",
        source: "https://github.com/ggml-org/llama.cpp/issues/11332",
    }],
    raises: false,
    heads: &[],
    fill,
    steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    buffer(account, text);
    if text.contains("gallocr") || text.contains("computebuffer") {
        account.family = &COMPUTE;
    }
    let of_cpu = ["ggml_backend_cpu_buffer", "ggml_aligned", "ggml_cuda_host"];
    if text.contains("failedtoallocatecpubuffer")
        || of_cpu.iter().any(|words| window.head.starts_with(words))
    {
        account.memory = Memory::Host;
        account.figures.tried = account
            .figures
            .tried
            .or_else(|| reading::behind(text, "attemptedtoallocate"))
            .or_else(|| reading::behind(text, "failedtoallocate"));
    }
    // It goes on with ordinary memory, or with a smaller buffer.
    if window.head.starts_with("ggml_cuda_host") || text.contains(RETRY) {
        account.cause = Some(Cause::Warning);
    }
    if text.contains("rocm") {
        account.who = ROCM.to_owned();
    }
}

const RETRY: &str = "retryingwithoutpipelineparallelism";
const ROCM: &str = "ROCm";

fn steps(account: &Account) -> Vec<Step> {
    if account.memory == Memory::Host {
        return vec![step("what the machine has left", "free -h")];
    }
    let less = match account.family.id == COMPUTE.id {
        true => step("a smaller batch at once", "llama-server -m MODEL -ub 128 -fa on"),
        false => step(
            "fewer layers on the GPU, a shorter context",
            "llama-server -m MODEL -ngl 20 -c 4096",
        ),
    };
    let tool = if account.who == ROCM { "rocm-smi" } else { "nvidia-smi" };
    vec![less, step("who else has the GPU", tool)]
}

/// The buffer that was asked for: to the byte, where a line says so.
pub(super) fn buffer(account: &mut Account, text: &str) {
    account.figures.tried = reading::bytes(text, "bufferofsize")
        .or_else(|| reading::bytes(text, "memoryallocationofsize"))
        .or_else(|| reading::behind(text, "failedtoallocatebuffer,size="))
        .or_else(|| reading::behind(text, "allocating"));
    account.device = reading::ordinal(text, "ondevice").or_else(|| {
        let named = [
            "failedtoallocatecuda",
            "failedtoallocaterocm",
            "failedtoallocatevulkan",
            "unabletoallocatecuda",
        ];
        named.iter().find_map(|words| reading::ordinal(text, words))
    });
}
