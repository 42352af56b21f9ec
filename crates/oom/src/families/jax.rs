//! JAX and XLA on GPUs: `RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes`.

use super::{Fact, Family, Head, Memory, Window, reading, says, step};
use crate::account::{Account, Kind};
use crate::amount::Amount;

pub(super) const FAMILY: Family = Family {
    id: "jax",
    speaker: "JAX",
    kind: Kind::Jax,
    memory: Memory::Device,
    means: "JAX's pool had no piece that large; what the rest of the GPU held is not in the message",
    facts: &[Fact {
        says: "JAX takes 75 % of the GPU when it starts; another JAX or TensorFlow process, or a display, then leaves \
               it too little. `XLA_PYTHON_CLIENT_PREALLOCATE=false` takes memory as it is needed",
        source: "https://docs.jax.dev/en/latest/gpu_memory_allocation.html",
    }],
    raises: true,
    heads: &[
        says("outofmemorywhiletryingtoallocate"),
        Head {
            words: "outofmemoryallocating",
            near: 0,
            // CuPy says so too, and goes on.
            fits: |place| !place.near(120).contains("allocatedsofar"),
        },
        says("failedtoallocaterequestfor"),
        Head {
            words: "failedtoallocate",
            near: 0,
            fits: |place| place.near(60).contains("bytesfornewconstant"),
        },
    ],
    fill,
    steps: |_| {
        vec![step("without taking 75 % at once", "XLA_PYTHON_CLIENT_PREALLOCATE=false COMMAND")]
    },
};

/// The number, and the first of XLA's peak buffers.
fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    let asked = reading::rest(text, window.head).unwrap_or_default();
    account.figures.tried = amount(asked);
    reading::pool(account, text);
    account.figures.planned = reading::behind(text, "totalallocation:");
    account.tensor = reading::rest(text, "shape:").and_then(|text| {
        let dtype = &text[..text.bytes().take(12).position(|byte| byte == b'[')?];
        let (shape, _) = reading::shape(&text[dtype.len()..])?;
        Some(reading::tensor(shape, dtype))
    });
}

/// `2.99GiB (3206250496B)`, `1.25TiB (rounded to 1374521760000)`
pub(super) fn amount(text: &str) -> Option<Amount> {
    let (rounded, length) = Amount::at(text)?;
    let rest = text[length..].strip_prefix('(').unwrap_or_default();
    let rest = rest.strip_prefix("roundedto").unwrap_or(rest);
    Some(reading::whole(rest).map_or(rounded, Amount::exactly))
}
