//! Programs that could not get memory of the host: C++'s `std::bad_alloc`, Rust's, Python's `MemoryError`.

use super::{Family, Head, Memory, Window, also, pinned, reading, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "bad_alloc",
    speaker: "the program",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "the machine, or the limit of its container, refused memory to the program",
    facts: &[],
    raises: true,
    heads: &[
        Head {
            words: "std::bad_alloc",
            near: 300,
            // RMM and Thrust go on with CUDA's words.
            fits: |place| {
                let rest = place.near(100);
                !["cuda", "bad_alloc:outofmemory", "bad_alloc:out_of_memory"]
                    .iter()
                    .any(|words| rest.contains(words))
            },
        },
        Head {
            words: "memoryallocationof",
            near: 0,
            fits: |place| {
                place.near(60).contains("bytesfailed")
                    && reading::number(place.rest, "allocationof").is_some()
            },
        },
        Head {
            words: "memoryerror",
            near: 300,
            // A terminal that is narrow breaks `torch.OutOfMemoryError` in two.
            fits: |place| {
                let is_alone = place.before.is_empty() && !place.above.ends_with("outof");
                is_alone && !place.near(200).contains("cuda")
            },
        },
        also("cannotallocatememory", 300),
    ],
    fill,
    steps: |_| vec![step("what the machine has left", "free -h")],
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.figures.tried = reading::bytes(window.text, "memoryallocationof");
    // InfiniBand's queues lie in memory that must be locked, which has a limit of its own.
    let before = window.before.get(window.before.len().saturating_sub(160)..).unwrap_or_default();
    if before.contains("ibv_") {
        account.family = &pinned::FAMILY;
    }
}
