//! PyTorch's caching allocator on NVIDIA's GPUs.

use super::{Family, Memory, also, no_steps, reading, says};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "cuda",
    speaker: "PyTorch",
    kind: Kind::Cuda,
    memory: Memory::Device,
    means: "the message has too few numbers to say why",
    facts: &[],
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
