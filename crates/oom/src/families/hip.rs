//! PyTorch's caching allocator on AMD's GPUs.

use super::{Family, Memory, no_steps, reading, says};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "hip",
    speaker: "PyTorch",
    kind: Kind::Hip,
    memory: Memory::Device,
    means: "the message has too few numbers to say why",
    facts: &[],
    raises: true,
    heads: &[says("hipoutofmemory")],
    fill: reading::caching_allocator,
    steps: no_steps,
};
