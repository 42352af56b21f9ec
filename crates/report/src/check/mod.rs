//! What a gate found, one script after another: for people, for CI and for pull requests.

mod github;
mod json;
mod junit;
mod markdown;
mod terminal;

use crate::bytes;
use crate::lines::visible;
use study::{Judgement, Run, Verdict};

pub use github::{Annotation, annotation};
pub use json::json;
pub use junit::junit;
pub use markdown::markdown;
pub use terminal::{row, summary};

/// A script that was checked.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its name in `fathom.toml`, or its command.
    pub name: String,
    /// What was run.
    pub command: String,
    /// What came of it.
    pub run: Run,
}

impl Check {
    /// Whether the gate lets it through.
    pub fn passes(&self) -> bool {
        self.run.exit_code == 0
    }

    fn word(&self) -> &'static str {
        match self.run.judgement() {
            Judgement::Fits => "fits",
            Judgement::Tight => "tight",
            Judgement::Needs => "needs",
            Judgement::Depends => "depends",
            Judgement::NotMeasured => "not measured",
            Judgement::DoesNotFit => "does not fit",
            Judgement::Grew => "grew",
            Judgement::ScriptFailed => "script failed",
            Judgement::Interrupted => "interrupted",
            Judgement::TimedOut => "timed out",
        }
    }

    /// Whether the script gave no answer: neither that it fits nor that it does not.
    fn is_error(&self) -> bool {
        use Verdict::{Interrupted, ScriptFailed, TimedOut};
        matches!(self.run.verdict, ScriptFailed | Interrupted | TimedOut)
    }

    fn card(&self) -> String {
        match &self.run.card {
            None => "unlimited".to_owned(),
            // Given by its memory alone.
            Some(card) if card.is_nameless() => bytes::text(card.memory_bytes),
            Some(card) => card.name.to_owned(),
        }
    }

    fn needs(&self) -> String {
        let Some((need, peak)) = self.run.needed().zip(self.run.peak.as_ref()) else {
            return "–".to_owned();
        };
        match &self.run.out_of_memory {
            None if self.run.unfinished.is_none() => bytes::text(need.bytes),
            // What it had when more was refused, or when it was broken off.
            _ => format!("> {}", bytes::text(peak.device_bytes)),
        }
    }

    /// The limit that holds: the budget, else the card's memory.
    fn limit(&self) -> String {
        let card = self.run.card.as_ref().map(|card| card.memory_bytes);
        self.run.budget_bytes.or(card).map_or("–".to_owned(), bytes::text)
    }

    /// How it compares with its baseline, in a word.
    fn change(&self) -> String {
        let against = self.run.against.as_ref();
        against
            .map(|against| against.comparison.need.unwrap_or(against.comparison.device))
            .map_or("–".to_owned(), crate::baseline::signed)
    }

    /// Why it did not pass: the headline, what grew, and the first cause.
    fn reasons(&self) -> Vec<String> {
        let mut reasons = vec![crate::headline(&self.run)];
        if let Some(against) = &self.run.against {
            let parts = crate::baseline::parts(&against.comparison);
            reasons.extend(
                parts
                    .iter()
                    .map(|part| format!("{}: {} {}", part.name, part.both(), part.change())),
            );
            reasons.extend(against.comparison.remarks.iter().cloned());
        }
        let cause = self.run.findings().iter().find(|finding| finding.counted);
        reasons.extend(
            cause.map(|cause| {
                format!("largest cause: {}, {}", cause.title, bytes::text(cause.bytes))
            }),
        );
        reasons.iter().map(|reason| visible(reason.trim_end()).into_owned()).collect()
    }

    /// The line of the user's source to look at: where memory ran out, else where the peak was raised.
    fn place(&self) -> Option<(&str, u64)> {
        let refusal = self.run.out_of_memory.as_ref();
        let refused = refusal.and_then(|refusal| Some((refusal.file.as_deref()?, refusal.line?)));
        let anatomy = self.run.anatomy();
        let raised = anatomy.and_then(|anatomy| anatomy.allocated_peak.raised_by.as_ref());
        let raised = raised.filter(|origin| !origin.file.is_empty());
        refused.or(raised.map(|origin| (origin.file.as_str(), u64::from(origin.line))))
    }
}

/// The exit code of all together: what does not fit weighs most, then scripts that failed by themselves.
pub fn exit_code(checks: &[Check]) -> i32 {
    let has = |code: i32| checks.iter().any(|check| check.run.exit_code == code);
    if has(1) { 1 } else { checks.iter().map(|check| check.run.exit_code).max().unwrap_or(0) }
}
