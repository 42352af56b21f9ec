//! LMDeploy, whose engine TurboMind asks CUDA by itself.

use super::{Fact, Family, Head, Memory, nothing, step};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "lmdeploy",
    speaker: "LMDeploy (TurboMind)",
    kind: Kind::Server,
    memory: Memory::Device,
    means: "weights, KV cache and the buffers of one batch did not fit together; the cache takes a fixed share of the GPU \
            before the buffers are made",
    facts: &[Fact {
        says: "`cache_max_entry_count` is that share; 0.2 leaves more to the rest",
        source: "https://github.com/InternLM/lmdeploy/issues/978",
    }],
    raises: true,
    heads: &[Head {
        words: "cudaruntimeerror:outofmemory",
        near: 0,
        fits: |place| place.near(160).contains("turbomind"),
    }],
    fill: nothing,
    steps: |_| {
        vec![
            step("a smaller cache", "lmdeploy serve api_server MODEL --cache-max-entry-count 0.2"),
            step("who else has the GPU", "nvidia-smi"),
        ]
    },
};
