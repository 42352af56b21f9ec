//! PyTorch's allocator of host memory: `DefaultCPUAllocator: can't allocate memory: you tried to allocate 132426121216 bytes`.

use super::{Family, Memory, Window, reading, says, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "cpu_allocator",
    speaker: "PyTorch",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "the machine, or the limit of its container, has too little memory for this tensor",
    facts: &[],
    raises: true,
    heads: &[
        says("defaultcpuallocator:"),
        says("$torch:notenoughmemory"),
        says("posix_memalign(&data"),
    ],
    fill,
    steps: |_| vec![step("what the machine has left", "free -h")],
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.figures.tried = reading::behind(window.text, "triedtoallocate");
}
