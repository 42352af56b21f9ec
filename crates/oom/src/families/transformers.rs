//! transformers and accelerate, which plan where each layer of a quantized model goes.

use super::{Fact, Family, Memory, no_steps, nothing, says};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "transformers",
    speaker: "transformers",
    kind: Kind::Library,
    memory: Memory::Device,
    means: "the plan of where layers go (`device_map`) did not fit the GPU: some were to go to the host or the disk, \
            which the quantized layers do not allow. Nothing was allocated yet",
    facts: &[Fact {
        says: "`device_map=\"auto\"` fills the GPUs first, then the host, then the disk, by what it finds free; \
               `max_memory` sets what it may take",
        source: "https://huggingface.co/docs/accelerate/concept_guides/big_model_inference",
    }],
    raises: true,
    heads: &[says("somemodulesaredispatchedonthecpuorthedisk")],
    fill: nothing,
    steps: no_steps,
};
