//! SGLang: no room for its KV cache at the start, or none for a batch while it serves.

use super::{Fact, Family, Head, Memory, Step, Window, says, step};
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
