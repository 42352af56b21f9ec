//! CUDA.jl: `Out of GPU memory trying to allocate 8.016 MiB`, with what its pool and the GPU have.

use super::{Fact, Family, Memory, Window, reading, says, step};
use crate::account::{Account, Kind};
use crate::amount::Amount;

pub(super) const FAMILY: Family = Family {
    id: "julia",
    speaker: "CUDA.jl",
    kind: Kind::Framework,
    memory: Memory::Device,
    means: "CUDA.jl asked for more than the GPU had left",
    facts: &[Fact {
        says: "arrays are freed when Julia collects garbage; `CUDA.unsafe_free!` frees one at once, `CUDA.reclaim()` gives \
               the pool's cache back",
        source: "https://cuda.juliagpu.org/stable/usage/memory/",
    }],
    raises: false,
    heads: &[says("outofgpumemory")],
    fill,
    steps: |_| vec![step("who has the GPU", "nvidia-smi")],
};

/// `Effective GPU memory usage: 99.72% (7.769 GiB/7.791 GiB)`, then the pool, or in older versions an allocator with a cap.
fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text.get(..800.min(window.text.len())).unwrap_or_default();
    let figures = &mut account.figures;
    figures.tried = reading::behind(text, "tryingtoallocate");
    let usage = reading::rest(text, "effectivegpumemoryusage:");
    let usage = usage.and_then(|text| text.split_once('(')?.1.split_once('/'));
    let pair = usage.and_then(|(used, all)| Some((Amount::at(used)?.0, Amount::at(all)?.0)));
    figures.allocated = reading::behind(text, "memorypoolusage:")
        .or_else(|| reading::behind(text, "cudaallocatorusage:"));
    figures.reserved = reading::before(text, "reserved)");
    figures.limit = reading::behind(text, "(cappedat");
    figures.capacity = pair.map(|(_, all)| all);
    // Under a cap it is the cap that leaves no room.
    figures.free = pair.and_then(|(used, all)| all.minus(used)).filter(|_| figures.limit.is_none());
}
