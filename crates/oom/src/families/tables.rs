//! Tables, which say what is in use and refuse nothing. `smi.rs` and `summary.rs` read them.

use super::{Family, Memory, no_steps, nothing};
use crate::account::Kind;

pub(crate) const NVIDIA_SMI: Family = Family {
    id: "nvidia_smi",
    speaker: "nvidia-smi",
    kind: Kind::Smi,
    memory: Memory::Device,
    means: "what all processes have of the GPU: contexts, caches and all",
    facts: &[],
    raises: false,
    heads: &[],
    fill: nothing,
    steps: no_steps,
};

pub(crate) const SUMMARY: Family = Family {
    id: "memory_summary",
    speaker: "PyTorch",
    kind: Kind::Summary,
    memory: Memory::Device,
    means: "what PyTorch's allocator has, now and at its peak",
    facts: &[],
    raises: false,
    heads: &[],
    fill: nothing,
    steps: no_steps,
};
