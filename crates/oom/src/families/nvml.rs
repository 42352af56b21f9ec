//! PyTorch was out of memory, and could not ask NVML for the numbers of its message.

use super::{Fact, Family, Head, Memory, Place, nothing, step};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "nvml",
    speaker: "PyTorch",
    kind: Kind::Cuda,
    memory: Memory::Device,
    means: "PyTorch was out of memory and asked NVML who has the GPU, to say so in its message; that failed, as it does in \
            MIG slices, on Jetson, in some containers and after an update of the driver. The numbers are lost",
    facts: &[
        Fact {
            says: "this assertion stands where the out-of-memory error should be: on Jetson NVML is only a stub",
            source: "https://github.com/pytorch/pytorch/issues/185240",
        },
        Fact {
            says: "where `nvmlInit` fails, driver and library are of two versions: `nvidia-smi` fails too, until the machine \
                   is started again",
            source: "https://github.com/pytorch/pytorch/issues/112950",
        },
    ],
    raises: true,
    heads: &[Head { words: "nvml_success==", near: 0, fits: is_of_allocator }],
    fill: nothing,
    steps: |_| vec![step("whether NVML works", "nvidia-smi")],
};

fn is_of_allocator(place: &Place<'_>) -> bool {
    place.near(300).contains("cudacachingallocator.cpp")
}
