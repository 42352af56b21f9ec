//! PyTorch's allocator of host memory: `DefaultCPUAllocator: can't allocate memory: you tried to allocate 132426121216 bytes`.

use super::{Fact, Family, Memory, Window, reading, says, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "cpu_allocator",
    speaker: "PyTorch",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "the machine, or the limit of its container, has too little memory for this tensor",
    facts: &[Fact {
        says: "Windows promises memory only up to what the machine and its page file have together: a larger page file \
               was the cure there",
        source: "https://github.com/AUTOMATIC1111/stable-diffusion-webui/issues/2478",
    }],
    raises: true,
    heads: &[
        says("defaultcpuallocator:"),
        says("$torch:notenoughmemory"),
        says("posix_memalign(&data"),
    ],
    fill,
    steps: |account| match account.who.as_str() {
        WINDOWS => vec![step("what the machine has left", "systeminfo | findstr Memory")],
        _ => vec![step("what the machine has left", "free -h")],
    },
};

/// Its path of the file, `..\\c10\\core\\impl\\alloc_cpu.cpp`, without what [`crate::clean::plain`] takes for escapes.
const WINDOWS: &str = "Windows";

fn fill(account: &mut Account, window: &Window<'_>) {
    let before = window.before.get(window.before.len().saturating_sub(80)..).unwrap_or_default();
    if before.contains("c10coreimpl") {
        account.who = WINDOWS.to_owned();
    }
    account.figures.tried = reading::behind(window.text, "triedtoallocate");
}
