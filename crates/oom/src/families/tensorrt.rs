//! TensorRT and TensorRT-LLM: an engine is built or loaded, or its executor made, and CUDA has too little left.

use super::{Fact, Family, Head, Memory, Window, also, reading, says, step};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "tensorrt",
    speaker: "TensorRT",
    kind: Kind::Server,
    memory: Memory::Device,
    means: "TensorRT asks CUDA by itself, beside PyTorch's pool, and there was too little left; while an engine is built, \
            ways of running a layer that want too much are left out",
    facts: &[Fact {
        says: "TensorRT-LLM takes `kv_cache_free_gpu_mem_fraction`, 0.9, of what is free for its KV cache; less leaves more \
               to others",
        source: "https://github.com/NVIDIA/TensorRT-LLM/issues/486",
    }],
    raises: false,
    heads: &[
        says("executorcreationfailedduetoinsufficientgpumemory"),
        also("nvinfer1::internal::defaultallocator::allocate:2(outofmemory)", 300),
        says("errorcode1:cudaruntime(outofmemory)"),
        Head {
            words: RUNNING,
            near: 0,
            fits: |place| place.line.contains("outofmemory") && place.line.contains("tensorrt_llm"),
        },
        also("requestedamountofgpumemory(", 400),
        also("outofmemory(requestedsizewas", 600),
    ],
    fill,
    steps: |account| {
        let less = match account.who.is_empty() {
            true => step(
                "less for trials while an engine is built",
                "trtexec --memPoolSize=workspace:1024M …",
            ),
            false => step(
                "less for the KV cache",
                "trtllm-serve MODEL --kv_cache_free_gpu_memory_fraction 0.5",
            ),
        };
        vec![less, step("who else has the GPU", "nvidia-smi")]
    },
};

/// TensorRT-LLM, whose engine runs.
const RUNNING: &str = "cudaruntimeerrorin";

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    if window.head == RUNNING {
        account.who = "TensorRT-LLM".to_owned();
    }
    if window.head.starts_with("executor") {
        let is_cache = text.contains("couldnotbecreated:kvcache");
        account.cause = is_cache.then_some(Cause::Cache);
        // In GiB, without a unit behind the number.
        let gib = |words| {
            let rest = reading::rest(text, words)?;
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let (number, _) = rest.split_at(end);
            Some(crate::amount::Amount::at(&format!("{number}gib"))?.0)
        };
        account.figures.capacity = gib("totalgpumemory(gib):");
        account.figures.free = gib("freegpumemorybeforecomponentcreationattempt(gib):");
        return;
    }
    account.figures.tried = reading::bytes(text, "requestedamountofgpumemory(")
        .or_else(|| reading::bytes(text, "requestedsizewas"))
        .or_else(|| reading::bytes(text, "userallocatorerrorallocating"));
}
