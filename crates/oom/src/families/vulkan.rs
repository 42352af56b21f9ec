//! Vulkan, below llama.cpp and MLC: `ggml_vulkan: Device memory allocation of size 118497280 failed.`

use super::{Fact, Family, Memory, Step, Window, also, llama_cpp, says, step};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "vulkan",
    speaker: "a program on Vulkan",
    kind: Kind::Framework,
    memory: Memory::Device,
    means: "Vulkan's driver refused a buffer: the GPU had too little left, or the buffer is longer than the driver lets \
            one be, which can be far less than the GPU has",
    facts: &[Fact {
        says: "`maxMemoryAllocationSize` of `vulkaninfo` is the most for one buffer; llama.cpp does not split its \
               compute buffer by it, but a smaller `--ubatch-size` makes that buffer smaller",
        source: "https://github.com/ggml-org/llama.cpp/issues/11332",
    }],
    raises: true,
    heads: &[
        says("ggml_vulkan:devicememoryallocationofsize"),
        says(TOO_LONG),
        says("vk_error_out_of_device_memory"),
        also("erroroutofdevicememory", 160),
    ],
    fill,
    steps,
};

const TOO_LONG: &str = "requestedbuffersizeexceedsdevicebuffersizelimit";
const LLAMA: &str = "llama.cpp";

fn fill(account: &mut Account, window: &Window<'_>) {
    llama_cpp::buffer(account, window.text);
    if window.text.contains("ggml") || window.before.ends_with("ggml_vulkan:") {
        account.who = LLAMA.to_owned();
    }
    if window.head == TOO_LONG {
        account.cause = Some(Cause::RequestTooLarge);
    }
}

fn steps(account: &Account) -> Vec<Step> {
    let limit = step("the most for one buffer", "vulkaninfo | grep -i maxMemoryAllocationSize");
    let less = step(
        "a smaller batch at once, fewer layers on the GPU",
        "llama-server -m MODEL -ub 128 -ngl 20",
    );
    [limit].into_iter().chain((account.who == LLAMA).then_some(less)).collect()
}
