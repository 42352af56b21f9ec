//! Intel's driver and SYCL below PyTorch, and below llama.cpp.

use super::{Fact, Family, Memory, Window, no_steps, says};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "level_zero",
    speaker: "Level Zero",
    kind: Kind::CudaError,
    memory: Memory::Device,
    means: "Intel's driver refused, and gave no numbers: the GPU had too little left",
    facts: &[Fact {
        says: "where PyTorch should raise an out-of-memory error, some drivers fail with such a code or lose the device",
        source: "https://github.com/pytorch/pytorch/issues/177714",
    }],
    raises: true,
    heads: &[
        says("ur_result_error_out_of_device_memory"),
        says("ur_result_error_out_of_resources"),
        says("ur_result_error_out_of_host_memory"),
        says("pi_error_out_of_resources"),
        says("pi_error_out_of_host_memory"),
        says("pi_out_of_resources"),
        says("ze_result_error_out_of_device_memory"),
        says("ze_result_error_out_of_host_memory"),
        says("ur_result_error_device_lost"),
    ],
    fill,
    steps: no_steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    // Registers and queues are resources too, and a device is lost for many reasons.
    account.sure = window.head.ends_with("memory");
    if window.head.ends_with("host_memory") {
        account.memory = Memory::Host;
    }
}
