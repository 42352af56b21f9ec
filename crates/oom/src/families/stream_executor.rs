//! The layer below TensorFlow and XLA that asks the driver: `failed to allocate 17.79G (19104890880 bytes) from device`.

use super::{Fact, Family, Head, Memory, Window, jax, reading, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "stream_executor",
    speaker: "TensorFlow or XLA",
    kind: Kind::TensorFlow,
    memory: Memory::Device,
    means: "the pool asked the driver for a large piece, and others, or this program itself, had too much of the GPU; \
            it asks for less then, so this may be a warning only",
    facts: &[Fact {
        says: "TensorFlow takes nearly all memory of every GPU it sees when it starts",
        source: "https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth",
    }],
    raises: false,
    heads: &[Head {
        words: "failedtoallocate",
        near: 0,
        fits: |place| place.near(110).contains("fromdevice:"),
    }],
    fill,
    steps: |_| vec![step("who has the GPU", "nvidia-smi")],
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.figures.tried = reading::rest(window.text, window.head).and_then(jax::amount);
}
