//! Ollama: it plans before it loads, and passes on what its runner says.

use super::{Fact, Family, Head, Memory, Step, Window, llama_cpp, reading, says, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "ollama",
    speaker: "Ollama",
    kind: Kind::Server,
    memory: Memory::Device,
    means: "its runner could not allocate a buffer on the GPU; Ollama's estimate of what fits was too high, or \
            others use the GPU",
    facts: &[Fact {
        says: "a longer context takes more memory; `OLLAMA_CONTEXT_LENGTH` sets it, and `ollama ps` shows how much of a \
               model is on the GPU",
        source: "https://github.com/ollama/ollama/blob/main/docs/context-length.mdx",
    }],
    raises: false,
    heads: &[
        says("modelrequiresmoresystemmemory"),
        Head {
            words: "llamarunnerprocesshasterminated",
            near: 0,
            fits: |place| {
                let reasons = ["cudamalloc", "outofmemory", "unabletoallocate", "signal:killed"];
                reasons.iter().any(|words| place.near(160).contains(words))
            },
        },
        says("llamarunnerexited,youmaynothaveenoughavailablememory"),
    ],
    fill,
    steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    if window.head == "modelrequiresmoresystemmemory" {
        account.memory = Memory::Host;
        account.figures.tried = reading::behind(text, "systemmemory(");
        account.figures.free = reading::behind(text, "thanisavailable(");
    } else if text.get(..60.min(text.len())).is_some_and(|text| text.contains("signal:killed")) {
        account.memory = Memory::Host;
        account.sure = false;
    } else {
        llama_cpp::buffer(account, text);
        account.sure = !window.head.starts_with("llamarunnerexited");
    }
}

fn steps(account: &Account) -> Vec<Step> {
    match account.memory {
        Memory::Host => vec![step("what the machine has left", "free -h")],
        _ => vec![
            step("what is loaded, and how much of it on the GPU", "ollama ps"),
            step("a shorter context", "OLLAMA_CONTEXT_LENGTH=4096 ollama serve"),
        ],
    }
}
