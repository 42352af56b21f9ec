//! Dask, whose nanny ends a worker that takes nearly all of its share.

use super::{Fact, Family, Head, Memory, nothing, step};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "dask",
    speaker: "Dask",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "Dask ended a worker that used nearly all of its share of the host's memory; a task whose worker is ended \
            several times fails as `KilledWorker`",
    facts: &[Fact {
        says: "at 60 % of its limit a worker writes to the disk, at 80 % it pauses, at 95 % it is ended; memory that Dask does \
               not manage counts too",
        source: "https://distributed.dask.org/en/stable/worker-memory.html",
    }],
    raises: false,
    heads: &[Head {
        words: "memorybudget",
        near: 0,
        fits: |place| place.before.ends_with('%') && place.before.contains("exceeded"),
    }],
    fill: nothing,
    steps: |_| {
        vec![
            step("what the machine has", "free -h"),
            step(
                "fewer workers with more each",
                "dask worker SCHEDULER --nworkers 2 --memory-limit 16GiB",
            ),
        ]
    },
};
