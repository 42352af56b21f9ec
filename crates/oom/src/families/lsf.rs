//! LSF: `TERM_MEMLIMIT: job killed after reaching LSF memory usage limit`, with a summary below.

use super::{Fact, Family, Memory, Window, reading, says, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "lsf",
    speaker: "LSF",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "the job used more memory of the host than its limit (`bsub -M`)",
    facts: &[Fact {
        says: "`-M` is the limit, `-R rusage[mem=…]` what is set aside; whether they count per job, process or core depends \
               on the cluster",
        source: "https://www.ibm.com/docs/en/spectrum-lsf/10.1.0?topic=lsfconf-lsb-job-memlimit",
    }],
    raises: false,
    heads: &[says("term_memlimit:")],
    fill,
    steps: |_| {
        vec![
            step("what the job used and was allowed", "bjobs -l JOBID"),
            step("with more", "bsub -M 64GB -R 'rusage[mem=64GB]' COMMAND"),
        ]
    },
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.figures.used = reading::behind(window.text, "maxmemory:");
    account.figures.limit = reading::behind(window.text, "totalrequestedmemory:");
}
