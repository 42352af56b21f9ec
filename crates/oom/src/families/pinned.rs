//! Memory of the host that is pinned for the GPU: CUDA hands it out, and says `out of memory` about it too.

use super::{Family, Head, Memory, Window, also, reading, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "pinned",
    speaker: "CUDA",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "memory of the host is pinned for copies to the GPU or the network, and the machine, or its limits, gave no more",
    facts: &[],
    raises: true,
    heads: &[
        Head {
            words: "failedtoalloc",
            near: 0,
            fits: |place| place.near(60).contains("bytesonhost"),
        },
        also("couldnotallocatepinnedhostmemory", 400),
        also("failedtopinmemory", 400),
    ],
    fill,
    steps: |_| {
        vec![
            step("what the machine has left", "free -h"),
            step("and what may be pinned", "ulimit -l"),
        ]
    },
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.figures.tried = reading::bytes(window.text, "failedtoalloc")
        .or_else(|| reading::bytes(window.text, "hostmemoryofsize:"));
}
