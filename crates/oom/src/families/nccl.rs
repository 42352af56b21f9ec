//! NCCL: buffers of collectives, and `unhandled cuda error`, behind which memory is only one reason.

use super::{Fact, Family, Head, Memory, Step, Window, also, reading, says, step};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "nccl",
    speaker: "NCCL",
    kind: Kind::Library,
    memory: Memory::Device,
    means: "NCCL takes its buffers from CUDA, beside PyTorch's pool, when a communicator is made or first used: \
            the GPU had too little left",
    facts: &[
        Fact {
            says: "an unhandled CUDA error is a call of NCCL's to CUDA that failed; `NCCL_DEBUG=WARN` prints which \
                   and why",
            source: "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        },
        Fact {
            says: "`NCCL_BUFFSIZE` and `NCCL_MAX_CTAS` make its buffers smaller and fewer",
            source: "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        },
    ],
    raises: true,
    heads: &[
        Head {
            words: "ncclwarncudafailure",
            near: 0,
            fits: |place| place.near(60).contains("outofmemory'"),
        },
        also("failedtocudacalloc", 300),
        Head {
            words: "unhandledcudaerror",
            near: 0,
            fits: |place| !place.before.ends_with("nccl"),
        },
        also("ncclunhandledcudaerror", 500),
        also("lasterror:cudafailure", 600),
        says("lasterror:failedtocudacalloc"),
    ],
    fill,
    steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    let asked = reading::rest(text, "failedtocudacalloc").unwrap_or_default();
    let asked =
        ["async", "host"].iter().fold(asked, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    account.figures.tried = reading::whole(asked).map(crate::amount::Amount::exactly);
    // `host:pid:tid [3] include/alloc.h:185 NCCL WARN …`
    let device = window.before.rfind(']').and_then(|end| {
        let open = window.before[..end].rfind('[')?;
        window.before.get(open + 1..end)?.parse().ok()
    });
    account.device = device
        .filter(|_| window.head.starts_with("ncclwarn") || window.head.starts_with("failedto"));
    account.sure = text.contains("outofmemory") || text.contains("cudacalloc");
    // The reason, with NCCL's debugging, stands in front of what PyTorch says of it.
    let before = window.before.rfind("ncclwarncudafailure").map(|at| &window.before[at..]);
    let reason = reading::rest(text, "cudafailure").or(before).unwrap_or_default();
    let reason = reason.get(..80.min(reason.len())).unwrap_or_default();
    account.sure |= reason.contains("outofmemory");
    let other = reason.contains('\'');
    if !account.sure && other {
        account.cause = Some(Cause::NotMemory);
    }
}

fn steps(account: &Account) -> Vec<Step> {
    match account.sure {
        true => Vec::new(),
        false => vec![step("what failed in CUDA", "NCCL_DEBUG=WARN COMMAND")],
    }
}
