//! vLLM, which plans its KV cache before it serves: no block fits, or not one sequence does.

use super::{Fact, Family, Head, Memory, Step, Window, reading, says, step};
use crate::account::{Account, Kind};
use crate::amount::Amount;
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "vllm",
    speaker: "vLLM",
    kind: Kind::Server,
    memory: Memory::Device,
    means: "weights and activations take all of the share of the GPU that vLLM may use: nothing is left for the KV cache",
    facts: &[
        Fact {
            says: "`gpu_memory_utilization` is the share of the GPU for weights, activations and cache together; the \
                   cache gets what the others leave",
            source: "https://docs.vllm.ai/en/latest/configuration/optimization.html",
        },
        Fact {
            says: "`max_model_len`, `max_num_seqs`, tensor parallelism, quantization and fewer CUDA graphs save memory",
            source: "https://docs.vllm.ai/en/latest/configuration/conserving_memory/",
        },
    ],
    raises: true,
    heads: &[
        says("noavailablememoryforthecacheblocks"),
        says("themodel'smaxseqlen("),
        says("toserveatleastonerequestwith"),
        Head {
            words: "freememoryondevice",
            near: 0,
            fits: |place| place.near(160).contains("lessthandesiredgpumemoryutilization"),
        },
    ],
    fill,
    steps,
};

/// The sampler is warmed up last, beside a cache that is as large as it may be.
pub(super) const WARM_UP: Family = Family {
    id: "vllm_warm_up",
    speaker: "vLLM",
    kind: Kind::Server,
    memory: Memory::Device,
    means: "weights and KV cache fill vLLM's share of the GPU first; then its sampler is tried with as many requests as \
            `max_num_seqs` allows, and what was left is too little for their logits",
    facts: &[Fact {
        says: "`max_num_seqs` and `gpu_memory_utilization` are what to lower, as the message says itself",
        source: "https://docs.vllm.ai/en/latest/configuration/conserving_memory/",
    }],
    raises: true,
    heads: &[says("cudaoutofmemoryoccurredwhenwarmingup")],
    fill: |account, window| {
        let requests = reading::rest(window.text, "warmingup").unwrap_or_default();
        let requests = requests.trim_start_matches(|c: char| !c.is_ascii_digit());
        reading::count(account, "requests", reading::whole(requests));
    },
    steps: |_| {
        vec![
            step("fewer requests at once", "vllm serve MODEL --max-num-seqs 256"),
            step("a smaller share", "vllm serve MODEL --gpu-memory-utilization 0.85"),
        ]
    },
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    if window.head == "freememoryondevice" {
        return at_start(account, text);
    }
    account.cause = Some(Cause::Cache);
    reading::count(account, "tokens_asked", reading::number(text, "maxseqlen("));
    let fit = reading::number(text, "storedinkvcache(")
        .or_else(|| reading::number(text, "estimatedmaximummodellengthis"));
    reading::count(account, "tokens_fit", fit);
    account.figures.tried = reading::before(text, "kvcacheisneeded");
    account.figures.free = reading::behind(text, "availablekvcachememory(");
}

/// `Free memory on device cuda:0 (5.51/23.65 GiB) on startup is less than desired GPU memory utilization (0.9,
/// 21.28 GiB)`: vLLM has nothing yet, so what is not free is others'.
fn at_start(account: &mut Account, text: &str) {
    let figures = &mut account.figures;
    let pair = reading::rest(text, "(").and_then(|rest| rest.split_once('/'));
    if let Some((free, rest)) = pair.filter(|(free, _)| free.len() < 12) {
        figures.capacity = Amount::at(rest).map(|(amount, _)| amount);
        figures.free = Amount::at(&format!("{free}gib")).map(|(amount, _)| amount);
    }
    let desired = reading::rest(text, "utilization(").and_then(|rest| rest.split_once(','));
    figures.tried = desired.and_then(|(_, amount)| Amount::at(amount)).map(|(amount, _)| amount);
    account.device = reading::ordinal(text, "cuda:");
    account.cause = Some(Cause::OtherProcesses);
}

fn steps(account: &Account) -> Vec<Step> {
    if account.cause == Some(Cause::OtherProcesses) {
        return vec![
            step("who has the GPU", "nvidia-smi"),
            step("with less of it", "vllm serve MODEL --gpu-memory-utilization 0.5"),
        ];
    }
    let fit = account.counts.iter().find(|count| count.name == "tokens_fit");
    let shorter = fit.map(|fit| Step {
        why: "a length that fits this cache",
        command: format!("vllm serve MODEL --max-model-len {}", fit.value),
    });
    let more = step(
        "more of the GPU, if nobody else uses it",
        "vllm serve MODEL --gpu-memory-utilization 0.95 --enforce-eager",
    );
    shorter.into_iter().chain([more]).collect()
}
