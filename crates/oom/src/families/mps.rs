//! PyTorch on Apple's processors: `(MPS allocated: 5.56 GB, other allocations: 1.10 GB, max allowed: 6.80 GB)`.

use super::{Fact, Family, Memory, Window, no_steps, reading, says};
use crate::account::{Account, Advised, Figures, Kind};

pub(super) const FAMILY: Family = Family {
    id: "mps",
    speaker: "PyTorch",
    kind: Kind::Mps,
    memory: Memory::Unified,
    means: "the message has too few numbers to say why",
    facts: &[Fact {
        says: "the watermark is a share of what the system recommends to use; 0.0 lifts it, and then the whole \
               machine can run out",
        source: "https://docs.pytorch.org/docs/stable/mps_environment_variables.html",
    }],
    raises: true,
    heads: &[says("mpsbackendoutofmemory")],
    fill,
    steps: no_steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    account.figures = Figures {
        tried: reading::behind(text, "triedtoallocate"),
        allocated: reading::behind(text, "mpsallocated:"),
        other: reading::behind(text, "otherallocations:"),
        limit: reading::behind(text, "maxallowed:"),
        ..Figures::default()
    };
    if text.contains("high_watermark_ratio") {
        account.advises.push(Advised::Watermark);
    }
}
