//! bitsandbytes: `Error out of memory at line 380 in file …/csrc/pythonInterface.c`.

use super::{Fact, Family, Memory, no_steps, nothing, says};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "bitsandbytes",
    speaker: "bitsandbytes",
    kind: Kind::Library,
    memory: Memory::Device,
    means: "bitsandbytes asked CUDA by itself, beside PyTorch's pool; in `pythonInterface` it asks for managed \
            memory, which lies on the host too",
    facts: &[Fact {
        says: "paged optimizers keep their state in CUDA's unified memory, which moves between GPU and host",
        source: "https://huggingface.co/docs/bitsandbytes/reference/optim/adam",
    }],
    raises: false,
    heads: &[says("outofmemoryatline")],
    fill: nothing,
    steps: no_steps,
};
