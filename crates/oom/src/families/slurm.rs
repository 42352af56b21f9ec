//! Slurm: `Detected 1 oom_kill event in StepId=11300781.0`, `exceeded memory limit (4200000 > 4194304)`.

use super::{Fact, Family, Head, Memory, Window, also, reading, says, step};
use crate::account::{Account, Kind};
use crate::amount::Amount;

pub(super) const FAMILY: Family = Family {
    id: "slurm",
    speaker: "Slurm",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "the job used more memory of the host than `--mem` or `--mem-per-cpu` gave it",
    facts: &[Fact {
        says: "`--mem` is the memory of the host per node, `--mem-per-cpu` per core; neither is the GPU's",
        source: "https://slurm.schedmd.com/sbatch.html",
    }],
    raises: false,
    heads: &[
        says("oom_killevent"),
        says("oom-killevent"),
        also("cgroupout-of-memoryhandler", 300),
        says("exceededmemorylimit("),
        says("exceededjobmemorylimit"),
        says("exceededstepmemorylimit"),
        Head {
            words: "outofmemory",
            near: 300,
            fits: |place| place.before.starts_with("srun:error:"),
        },
    ],
    fill,
    steps: |_| {
        vec![
            step("what the job used at most", "sacct -j JOBID --format=JobID,MaxRSS,ReqMem,State"),
            step("with more", "sbatch --mem=64G job.sh"),
        ]
    },
};

fn fill(account: &mut Account, window: &Window<'_>) {
    // In KiB: used, and what was allowed.
    let Some(pair) = reading::rest(window.text, "exceededmemorylimit(") else { return };
    let kib = |number: u64| Amount::exactly(number.saturating_mul(1024));
    account.figures.used = reading::whole(pair).map(kib);
    account.figures.limit = reading::number(pair, ">").map(kib);
}
