//! CuPy and Chainer: `Out of memory allocating 25,600,000 bytes (allocated so far: 3,635,267,072 bytes).`

use super::{Fact, Family, Head, Memory, Window, reading, says, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "cupy",
    speaker: "CuPy",
    kind: Kind::Framework,
    memory: Memory::Device,
    means: "CuPy's pool asked CUDA for more than the GPU had left; how large the GPU is, is not in the message",
    facts: &[Fact {
        says: "the pool keeps freed memory; `free_all_blocks()` gives it back, and `CUPY_GPU_MEMORY_LIMIT` limits it",
        source: "https://docs.cupy.dev/en/stable/user_guide/memory.html",
    }],
    raises: true,
    heads: &[
        Head {
            words: "outofmemoryallocating",
            near: 0,
            fits: |place| place.near(120).contains("allocatedsofar"),
        },
        says("outofmemorytoallocate"),
    ],
    fill,
    steps: |_| vec![step("who has the GPU", "nvidia-smi")],
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    account.figures.tried = reading::bytes(text, window.head);
    account.figures.allocated =
        reading::bytes(text, "allocatedsofar:").or_else(|| reading::bytes(text, "(total"));
    account.figures.limit = reading::bytes(text, "limitsetto:");
}
