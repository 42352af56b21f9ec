//! SGLang: no room for its KV cache at the start, or none for a batch while it serves.

use super::{Fact, Family, Head, Memory, Step, Window, reading, says, step};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "sglang",
    speaker: "SGLang",
    kind: Kind::Server,
    memory: Memory::Device,
    means: "weights take all of the share that `--mem-fraction-static` gives to weights and KV cache: nothing is left \
            for the cache",
    facts: &[Fact {
        says: "at the start, raise `--mem-fraction-static`; out of memory while serving, lower it, or lower \
                   `--chunked-prefill-size` and `--max-running-requests`",
        source: "https://docs.sglang.io/advanced_features/hyperparameter_tuning.html",
    }],
    raises: true,
    heads: &[
        Head {
            words: "notenoughmemory.pleasetrytoincrease",
            near: 0,
            fits: |place| place.near(80).contains("mem-fraction-static"),
        },
        says("leavenogpumemoryforthekvcacheunder--mem-fraction-static"),
        says("prefilloutofmemory.trytoloweryourbatchsize"),
        says("decodeoutofmemory.trytoloweryourbatchsize"),
    ],
    fill,
    steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.cause = Some(Cause::Cache);
    if window.head.contains("trytoloweryourbatchsize") {
        account.who = "serving".to_owned();
    }
}

fn steps(account: &Account) -> Vec<Step> {
    let (why, command) = match account.who.is_empty() {
        true => ("more for weights and cache", "--mem-fraction-static 0.9"),
        false => ("less in one batch", "--max-running-requests 16 --chunked-prefill-size 2048"),
    };
    vec![Step {
        why,
        ..step("", &format!("python -m sglang.launch_server --model-path MODEL {command}"))
    }]
}

/// Graphs are captured last, beside a cache that is as large as it may be.
pub(super) const GRAPHS: Family = Family {
    id: "sglang_graphs",
    speaker: "SGLang",
    kind: Kind::Cuda,
    memory: Memory::Device,
    means: "weights and KV cache take the share that `--mem-fraction-static` gives them; the CUDA graphs that are captured \
            afterwards found too little beside it",
    facts: &[Fact {
        says: "a smaller `--mem-fraction-static` or `--cuda-graph-max-bs` leaves room for graphs, and \
               `--disable-cuda-graph` needs none",
        source: "https://docs.sglang.io/advanced_features/hyperparameter_tuning.html",
    }],
    raises: true,
    heads: &[
        says("capturecudagraphfailed:cudaoutofmemory"),
        Head {
            words: "capturecudagraphfailed:",
            near: 0,
            fits: |place| place.near(120).contains("illegalmemoryaccess"),
        },
    ],
    fill: |account, window| {
        reading::caching_allocator(account, window);
        if !window.head.ends_with("outofmemory") {
            account.kind = Kind::Server;
            account.cause = Some(Cause::NotMemory);
        }
    },
    steps: |account| match account.cause {
        Some(Cause::NotMemory) => vec![step("which call it was", "CUDA_LAUNCH_BLOCKING=1 COMMAND")],
        _ => vec![step(
            "a smaller share",
            "python -m sglang.launch_server --model-path MODEL --mem-fraction-static 0.8",
        )],
    },
};
