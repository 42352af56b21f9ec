//! Triton: `out of resource: shared memory, Required: 66560, Hardware limit: 65536`.

use super::{Fact, Family, Head, Memory, Window, reading, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "triton",
    speaker: "Triton",
    kind: Kind::Library,
    memory: Memory::OnChip,
    means: "one block of a kernel wants more on-chip memory than a multiprocessor has; how full the GPU is does \
            not matter",
    facts: &[Fact {
        says: "the kernel was written for a GPU with more shared memory per block; smaller blocks or fewer stages fit",
        source: "https://github.com/triton-lang/triton/pull/996",
    }],
    raises: true,
    heads: &[Head {
        words: "outofresource:",
        near: 0,
        fits: |place| place.near(160).contains("hardwarelimit"),
    }],
    fill,
    steps: |_| {
        let look = "python -c 'import torch; print(torch.cuda.get_device_properties(0))'";
        vec![step("which GPU it is, and what a block may have", look)]
    },
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.figures.tried = reading::bytes(window.text, "required:");
    // Who retells it writes `limitation`.
    let limit = reading::rest(window.text, "hardwarelimit").unwrap_or_default();
    account.figures.limit = reading::bytes(limit, ":");
}
