//! TensorFlow: the tensor that found no place, and its BFC allocator, which XLA uses too.

use super::{Fact, Family, Memory, Window, also, directml, jax, reading, says, step};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "tensorflow",
    speaker: "TensorFlow",
    kind: Kind::TensorFlow,
    memory: Memory::Device,
    means: "TensorFlow's pool had no piece that large; what the rest of the GPU held is not in the message",
    facts: &[Fact {
        says: "TensorFlow takes nearly all memory of every GPU it sees when it starts; \
               `TF_FORCE_GPU_ALLOW_GROWTH=true` takes it as it is needed",
        source: "https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth",
    }],
    raises: true,
    heads: &[
        says("oomwhenallocatingtensorwithshape"),
        says("ranoutofmemorytryingtoallocate"),
        also("sumtotalofin-usechunks:", 4000),
        says("failedtoallocatememory[op:"),
        says("failedtoallocatememoryforthebatchofcomponent"),
        // How it says that a copy to a full GPU failed.
        also("dsttensorisnotinitialized", 1000),
    ],
    fill,
    steps: |_| vec![step("without taking all at once", "TF_FORCE_GPU_ALLOW_GROWTH=true COMMAND")],
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    // XLA of JAX has the same allocator, in a folder of its own.
    let place = &window.before[window.before.len().saturating_sub(160)..];
    if place.contains("external/") || place.contains("xla/tsl/") {
        (account.family, account.kind) = (&jax::FAMILY, Kind::Jax);
    }
    if window.head == "ranoutofmemorytryingtoallocate" {
        account.figures.tried = reading::rest(text, window.head).and_then(jax::amount);
        // `The caller indicates that this is not a failure, …`
        account.cause = text.contains("thisisnotafailure").then_some(Cause::Warning);
    }
    reading::pool(account, text);
    if account.figures.limit.is_none() {
        // The allocator prints its statistics before the operator fails.
        let stats = window.before.rfind("stats:limit:").map_or("", |at| &window.before[at..]);
        reading::pool(account, stats);
    }
    let named = reading::rest(text, "tensorwithshape").filter(|_| window.head.starts_with("oom"));
    let Some((shape, rest)) = named.and_then(reading::shape) else { return };
    let dtype = reading::rest(rest, "andtype").unwrap_or_default();
    let dtype = dtype.split("on/").next().unwrap_or_default();
    let dtype = dtype.get(..dtype.len().min(16)).unwrap_or_default();
    account.tensor = Some(reading::tensor(shape, dtype));
    let device = reading::rest(rest, "device:").unwrap_or_default();
    if device.starts_with("cpu") {
        account.memory = Memory::Host;
    }
    if device.is_empty() {
        account.memory = Memory::NotTold;
    }
    if device.starts_with("dml") {
        account.family = &directml::TENSORFLOW;
    }
    account.device = device.strip_prefix("gpu:").and_then(|text| reading::ordinal(text, ""));
}
