//! PyTorch up to 0.4 and Torch: the allocator below was THC, and its messages have no numbers.

use super::{Family, Memory, no_steps, nothing, says};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "thc",
    speaker: "PyTorch 0.4 or older",
    kind: Kind::CudaError,
    memory: Memory::Device,
    means: "PyTorch's own memory of the GPU (its allocator was called THC up to 0.4): the GPU was full, and \
            versions that old do not say by how much",
    facts: &[],
    raises: true,
    heads: &[says("cudaruntimeerror(2):outofmemory"), says("=2:outofmemory")],
    fill: nothing,
    steps: no_steps,
};
