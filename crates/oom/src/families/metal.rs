//! Metal itself: one buffer is longer than it makes them, or its command buffer ran out.

use super::{Family, Head, Memory, Window, no_steps, reading, says};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "metal",
    speaker: "Metal",
    kind: Kind::Mps,
    memory: Memory::Unified,
    means: "Metal had too little memory for the work that was queued; the message has no numbers",
    facts: &[],
    raises: true,
    heads: &[
        Head {
            words: "invalidbuffersize:",
            near: 0,
            fits: |place| reading::behind(place.rest, "invalidbuffersize:").is_some(),
        },
        says("kiogpucommandbuffercallbackerroroutofmemory"),
        says("[metal::malloc]attemptingtoallocate"),
    ],
    fill,
    steps: no_steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    account.figures.tried = match window.head {
        "invalidbuffersize:" => reading::behind(text, window.head),
        _ => reading::bytes(text, "attemptingtoallocate"),
    };
    account.figures.limit = reading::bytes(text, "maximumallowedbuffersizeof");
    // Both forms compare with the longest buffer that Metal makes.
    account.cause = account.figures.tried.map(|_| Cause::RequestTooLarge);
}
