//! PyTorch's caching allocator on NVIDIA's GPUs.

use super::{Fact, Family, Memory, also, no_steps, reading, says};
use crate::account::Kind;

/// What holds for every version.
pub(super) const FAQ: &[Fact] = &[Fact {
    says: "look for what is kept from step to step first: a loss that is summed up with its graph, outputs in lists",
    source: "https://docs.pytorch.org/docs/stable/notes/faq.html",
}];

pub(super) const FAMILY: Family = Family {
    id: "cuda",
    speaker: "PyTorch",
    kind: Kind::Cuda,
    memory: Memory::Device,
    means: "the message has too few numbers to say why",
    facts: FAQ,
    raises: true,
    heads: &[
        says("cudaoutofmemory"),
        // Where the head was cut off.
        also("triedtoallocate", 160),
        also("totalcapacity;", 320),
    ],
    fill: reading::caching_allocator,
    steps: no_steps,
};
