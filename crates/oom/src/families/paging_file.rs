//! Windows: `The paging file is too small for this operation to complete`.

use super::{Family, Memory, nothing, says, step};
use crate::account::Kind;

pub(super) const FAMILY: Family = Family {
    id: "paging_file",
    speaker: "Windows",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "Windows promises memory only up to what the machine and its page file have together; libraries and workers \
            of a loader ask for much of it. A larger page file, or fewer workers, helps",
    facts: &[],
    raises: true,
    heads: &[says("pagingfileistoosmall")],
    fill: nothing,
    steps: |_| vec![step("what the machine and its page file have", "systeminfo | findstr Memory")],
};
