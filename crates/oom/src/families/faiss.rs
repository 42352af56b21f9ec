//! Faiss on the GPU: scratch memory and the data of an index, asked of CUDA directly.

use super::{Fact, Family, Head, Memory, Window, no_steps, reading};
use crate::account::{Account, Kind};
use crate::amount::Amount;

pub(super) const FAMILY: Family = Family {
    id: "faiss",
    speaker: "Faiss",
    kind: Kind::Library,
    memory: Memory::Device,
    means: "Faiss asks CUDA by itself, beside PyTorch's pool, and the GPU had too little left: what PyTorch keeps cached \
            counts as taken",
    facts: &[
        Fact {
            says: "scratch memory is taken when `StandardGpuResources` is made, up to 1.5 GiB; `setTempMemory` sets how \
                   much, `noTempMemory` none",
            source: "https://github.com/facebookresearch/faiss/wiki/Faiss-on-the-GPU",
        },
        Fact {
            says: "the data of an index is not part of it: that grows as vectors are added",
            source: "https://github.com/facebookresearch/faiss/issues/2179",
        },
    ],
    raises: true,
    heads: &[
        Head {
            words: "failedtocudamalloc",
            near: 0,
            fits: |place| place.near(100).contains("outofmemory"),
        },
        Head {
            words: "standardgpuresources:allocfailtype",
            near: 0,
            fits: |place| place.near(240).contains("outofmemory"),
        },
    ],
    fill,
    steps: no_steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    let newer = reading::rest(text, "allocfailtype");
    let size = newer.and_then(|text| reading::number(text, "size"));
    account.figures.tried =
        size.map(Amount::exactly).or_else(|| reading::bytes(text, "failedtocudamalloc"));
    let device = newer.and_then(|text| reading::ordinal(text, "dev"));
    account.device = device.or_else(|| reading::ordinal(text, "ondevice"));
    let is_scratch = newer.is_some_and(|text| text.starts_with("temporarymemory"));
    let is_data = newer.is_some_and(|text| text.starts_with("flatdata") || text.starts_with("ivf"));
    account.who = match () {
        () if is_scratch => "Faiss for its scratch memory",
        () if is_data => "Faiss for the data of an index",
        () => "Faiss",
    }
    .to_owned();
}
