//! PyTorch's caching allocator on Intel's GPUs, and its forerunner in Intel's extension.

use super::{Family, Memory, no_steps, reading, says};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "xpu",
    speaker: "PyTorch",
    kind: Kind::Xpu,
    memory: Memory::Device,
    means: "the message has too few numbers to say why",
    facts: &[],
    raises: true,
    heads: &[says("xpuoutofmemory"), says("allocationisoutofdevicememoryoncurrentplatform")],
    fill: reading::caching_allocator,
    steps: no_steps,
};
