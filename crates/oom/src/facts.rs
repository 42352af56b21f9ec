//! What maintainers say to a message: of its family, and of its reason.

use crate::account::{Account, Kind};
use crate::cause::Cause;
use crate::families::Fact;
use crate::traceback::Traceback;

/// What is true of a reason, whoever's allocator speaks.
pub(crate) struct OfCause {
    /// Where it is said, as the reference has it.
    pub(crate) families: &'static str,
    pub(crate) facts: &'static [Fact],
    holds: fn(&Account, Cause) -> bool,
}

/// Tensors of the program itself took the memory, or may have.
const OWN: [Cause; 5] =
    [Cause::Full, Cause::Pieces, Cause::RequestTooLarge, Cause::Limit, Cause::NotTold];

pub(crate) const OF_CAUSES: [OfCause; 3] = [
    OfCause {
        families: "`cuda`, `hip`, `xpu`, `thc`, where its own tensors took the memory",
        facts: &[Fact {
            says: "look for what is kept from step to step first: a loss that is summed up with its graph, outputs in \
                   lists",
            source: "https://docs.pytorch.org/docs/stable/notes/faq.html",
        }],
        holds: |account, cause| {
            let is_torch = account.kind.is_caching_allocator() || account.family.id == "thc";
            is_torch && OWN.contains(&cause)
        },
    },
    OfCause {
        families: "`hip`, where more was tried than the GPU has",
        facts: &[Fact {
            says: "of a processor with graphics of its own (an APU) how much memory counts as the GPU's is a setting: \
                   the firmware's VRAM, and the kernel's limits of shared memory (GTT, TTM)",
            source: "https://rocm.docs.amd.com/en/docs-7.14.0/reference/system-optimization/rdna3-5.html",
        }],
        holds: |account, cause| account.kind == Kind::Hip && cause == Cause::LargerThanCard,
    },
    OfCause {
        families: "`cuda`, `hip` on Windows, where memory is in pieces",
        facts: &[Fact {
            says: "PyTorch for Windows has `expandable_segments` in its newest releases only, if at all: where it warns \
                   that they are `not supported on this platform`, it goes on without them",
            source: "https://github.com/pytorch/pytorch/issues/122057",
        }],
        holds: |account, cause| {
            let calls = account.traceback.as_ref();
            cause == Cause::Pieces && calls.is_some_and(Traceback::is_of_windows)
        },
    },
];

/// What there is to say to a message that was weighed.
pub fn facts(account: &Account, cause: Cause) -> Vec<&'static Fact> {
    // They are about memory, and mostly about that of the GPU.
    if cause == Cause::NotMemory || account.is_of_host_instead() && account.family.id != "ollama" {
        return Vec::new();
    }
    let of_cause = OF_CAUSES.iter().filter(|row| (row.holds)(account, cause));
    account.family.facts.iter().chain(of_cause.flat_map(|row| row.facts)).collect()
}
