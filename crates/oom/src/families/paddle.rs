//! Paddle: `Cannot allocate 98.000244MB memory on GPU 0, 6.000000GB memory has been allocated and available memory is only …`

use super::{Fact, Family, Head, Memory, Window, reading, says, step};
use crate::account::{Account, Figures, Kind};

pub(super) const FAMILY: Family = Family {
    id: "paddle",
    speaker: "Paddle",
    kind: Kind::Framework,
    memory: Memory::Device,
    means: "Paddle asked for more than the GPU had left; who held the rest is not in the message",
    facts: &[Fact {
        says: "by default (`FLAGS_allocator_strategy=auto_growth`) Paddle takes memory as it is needed, which can leave \
               more fragments",
        source: "https://paddlepaddle.org.cn/documentation/docs/en/guides/flags/memory_en.html",
    }],
    raises: true,
    heads: &[
        Head {
            words: "cannotallocate",
            near: 0,
            fits: |place| {
                let near = place.near(80);
                near.contains("memoryongpu") || near.contains("gpumemory,availablememory")
            },
        },
        // Before 1.0.
        says(OLD),
    ],
    fill,
    steps: |_| vec![step("who has the GPU", "nvidia-smi")],
};

const OLD: &str = "enforceallocating<=availablefailed,";

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    if window.head == OLD {
        // `10513462067 > 1369702144`: a share of the GPU, more than what was free.
        account.figures.tried = reading::bytes(text, OLD);
        account.figures.free = reading::bytes(text, ">");
        return;
    }
    account.figures = Figures {
        tried: reading::behind(text, "cannotallocate"),
        allocated: reading::before(text, "memoryhasbeenallocated"),
        free: reading::behind(text, "availablememoryisonly")
            .or_else(|| reading::behind(text, "availablememoryis")),
        ..Figures::default()
    };
    account.device = reading::ordinal(text, "memoryongpu")
        .or_else(|| reading::ordinal(window.before, "memoryerrorongpu"));
}
