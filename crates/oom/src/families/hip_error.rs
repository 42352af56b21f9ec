//! AMD's driver.

use super::{Family, Memory, no_steps, nothing, says};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "hip_error",
    speaker: "HIP",
    kind: Kind::CudaError,
    memory: Memory::Device,
    means: "AMD's driver refused, and gave no numbers: the GPU had too little left, or its context could not be made",
    facts: &[],
    raises: true,
    heads: &[
        says("hiperror:outofmemory"),
        says("hiperroroutofmemory"),
        says("hsa_status_error_out_of_resources"),
    ],
    fill: nothing,
    steps: no_steps,
};
