//! Shared memory of the host, `/dev/shm`: loaders pass batches through it, and NCCL its buffers.

use super::{Fact, Family, Head, Memory, Window, also, reading, says, step};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "shared_memory",
    speaker: "shared memory",
    kind: Kind::Host,
    memory: Memory::Shared,
    means: "/dev/shm was full: processes pass tensors through it, and in a container it is small unless it is given \
            more",
    facts: &[Fact {
        says: "loaders with several workers share tensors through shared memory; containers need `--ipc=host` or \
               `--shm-size`",
        source: "https://github.com/pytorch/pytorch#docker-image",
    }],
    raises: true,
    heads: &[
        says("insufficientsharedmemory(shm)"),
        says("workersareoutofsharedmemory"),
        Head {
            words: "iskilledbysignal:buserror",
            near: 0,
            fits: |place| !place.near(120).contains("workersareoutofsharedmemory"),
        },
        says("unabletowritetofile</torch_"),
        says("unabletoopensharedmemoryobject</torch_"),
        says("unabletoallocatesharedmemory(shm)"),
        Head { words: "unabletommap", near: 0, fits: |place| place.near(80).contains("</torch_") },
        says("failedtoextend/dev/shm"),
        also("whilecreatingsharedmemorysegment", 300),
        says("nospaceleftondevice:'/dev/shm"),
        says("signal7(sigbus)"),
        also("exitcode:-7", 400),
        also("exitswithreturncode=-7", 400),
    ],
    fill,
    steps: |_| {
        vec![
            step("how large it is, and how full", "df -h /dev/shm"),
            step("more of it for a container", "docker run --shm-size=16g IMAGE COMMAND"),
        ]
    },
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    account.cause = Some(Cause::SharedMemory);
    account.figures.tried = match window.head {
        "unabletommap" => reading::bytes(text, window.head),
        "failedtoextend/dev/shm" => {
            let end = text.find("bytes").unwrap_or(0);
            crate::amount::Amount::before(&text[..end + "bytes".len().min(text.len() - end)])
                .map(|(amount, _)| amount)
        }
        "whilecreatingsharedmemorysegment" => reading::bytes(text, "(size"),
        _ => None,
    };
    // A bus error has other reasons as well, though rarely.
    account.sure = !["signal7", "exit"].iter().any(|word| window.head.starts_with(word));
}
