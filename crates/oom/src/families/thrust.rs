//! Thrust and CUB, which sort and scan inside of PyTorch and of extensions.

use super::{Family, Head, Memory, also, no_steps, nothing};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "thrust",
    speaker: "Thrust",
    kind: Kind::Library,
    memory: Memory::Device,
    means: "Thrust asked CUDA for scratch memory by itself, beside PyTorch's pool, and the GPU had too little left",
    facts: &[],
    raises: false,
    heads: &[
        Head { words: "cudaerror2[", near: 0, fits: |place| place.near(200).contains("thrust") },
        also("bad_alloc:cudaerrormemoryallocation", 400),
        also("bad_alloc:outofmemory", 400),
        also("::detail::bad_alloc", 300),
        also("parallel_forfailed:cudaerrormemoryallocation", 400),
        also("parallel_forfailed:outofmemory", 400),
        also("get_temporary_bufferfailed", 400),
    ],
    fill: nothing,
    steps: no_steps,
};
