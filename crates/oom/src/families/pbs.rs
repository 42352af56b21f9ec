//! PBS and Torque: `PBS: job killed: mem 38427376kb exceeded limit 33554432kb`.

use super::{Family, Head, Memory, Window, reading, says, step};
use crate::account::{Account, Kind};
use crate::amount::Amount;

pub(super) const FAMILY: Family = Family {
    id: "pbs",
    speaker: "PBS",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "the job used more memory of the host than `-l mem`, `-l vmem` or `-l select=…:mem` gave it",
    facts: &[],
    raises: false,
    heads: &[
        Head { words: "pbs:jobkilled:", near: 0, fits: |place| place.near(40).contains("mem") },
        says("jobexceededamemoryresourcelimit"),
    ],
    fill,
    steps: |_| {
        vec![
            step("what the job used at most", "qstat -fx JOBID"),
            step("with more", "qsub -l mem=64gb job.sh"),
        ]
    },
};

/// In KiB, in bytes where no unit stands, and `mem job total 115343360 kb` of some servers.
fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text.get(..400.min(window.text.len())).unwrap_or_default();
    let amount = |text: Option<&str>| {
        let text = text?.trim_start_matches(|c: char| !c.is_ascii_digit());
        Amount::at(text)
            .map(|(amount, _)| amount)
            .or_else(|| reading::whole(text).map(Amount::exactly))
    };
    let used = reading::rest(text, "pbs:jobkilled:").and_then(|text| text.split("exceeded").next());
    account.figures.used = amount(used).or_else(|| reading::behind(text, "resources_used.mem="));
    account.figures.limit = amount(reading::rest(text, "exceededlimit"));
}
