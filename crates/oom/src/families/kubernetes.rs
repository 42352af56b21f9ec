//! Kubernetes and containers: `OOMKilled`, the node that was low on memory.

use super::{Fact, Family, Head, Memory, nothing, says, step};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "kubernetes",
    speaker: "Kubernetes",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "the container used more memory of the host than its limit, or the node had none left",
    facts: &[Fact {
        says: "a container that uses more than its memory limit is ended, with the reason OOMKilled",
        source: "https://kubernetes.io/docs/tasks/configure-pod-container/assign-memory-resource/",
    }],
    raises: false,
    heads: &[
        // `docker inspect` always has the word.
        Head {
            words: "oomkilled",
            // Slurm says so too.
            near: 300,
            fits: |place| !place.rest.starts_with("oomkilled\":false"),
        },
        says("nodewaslowonresource:memory"),
    ],
    fill: nothing,
    steps: |_| vec![step("its limit, and why it ended", "kubectl describe pod POD")],
};
