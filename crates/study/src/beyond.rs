//! A run that does not fit, once more without a limit: what it would have needed.

use anatomy::Origin;

use crate::need::Need;
use crate::run::{PeakBytes, Run};

/// What the same command needs on the same card with memory enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beyond {
    /// `None` if it did not go through without a limit either, for another reason.
    pub need: Option<Need>,
    /// Where it holds most.
    pub peak: PeakBytes,
    /// The request that raised it: the last for which more memory was needed.
    pub raised_by: Option<Origin>,
    /// The largest cause of that peak, and its bytes.
    pub cause: Option<(String, u64)>,
    /// Why it did not go through, if it did not.
    pub failure: Option<String>,
}

impl Beyond {
    /// Of a run without a limit, and what it was found to need.
    pub fn of(run: &Run, need: Option<Need>) -> Beyond {
        let largest = run.findings().iter().find(|finding| finding.counted);
        Beyond {
            need,
            peak: run.peak.as_ref().map(|peak| peak.allocated.clone()).unwrap_or_default(),
            raised_by: run.anatomy().and_then(|anatomy| anatomy.allocated_peak.raised_by.clone()),
            cause: largest.map(|finding| (finding.title.clone(), finding.bytes)),
            failure: run.failure.clone().filter(|_| need.is_none()),
        }
    }
}
