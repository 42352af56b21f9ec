//! Caffe, which checks every call of CUDA's and ends.

use super::{Fact, Family, Head, Memory, also, nothing, step};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "caffe",
    speaker: "Caffe",
    kind: Kind::Framework,
    memory: Memory::Device,
    means: "the GPU had too little left for a blob of this net; how much, and who had the rest, is not in the message",
    facts: &[Fact {
        says: "it is the GPU's memory, not the machine's: a smaller `batch_size`, made up for by `iter_size`, takes less",
        source: "https://github.com/yjxiong/caffe/issues/69",
    }],
    raises: false,
    heads: &[
        also("==cudasuccess(2vs.0)outofmemory", 160),
        // Caffe2.
        Head {
            words: "==cudasuccess.2vs0.errorat:",
            near: 160,
            fits: |place| place.near(200).contains("outofmemory"),
        },
    ],
    fill: nothing,
    steps: |_| vec![step("who has the GPU", "nvidia-smi")],
};
