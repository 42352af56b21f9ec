//! The answer to "will it fit", with its margin.

use crate::decision::RestsOn;
use crate::need::{Need, NeedKnown};
use crate::run::{Run, Verdict};

/// What is said of a run: its verdict, and how near it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Fits,
    /// It fits, and what it needs is so near to what there is that our own error could decide.
    Tight,
    /// No GPU and no budget was named: what it needs is the answer.
    Needs,
    /// It went through with what was assumed of values that nobody knows.
    Depends,
    /// The script used no GPU.
    NotMeasured,
    DoesNotFit,
    Grew,
    ScriptFailed,
    Interrupted,
    TimedOut,
}

impl Judgement {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Judgement::Fits => "fits",
            Judgement::Tight => "tight",
            Judgement::Needs => "needs",
            Judgement::Depends => "depends",
            Judgement::NotMeasured => "not_measured",
            Judgement::DoesNotFit => "does_not_fit",
            Judgement::Grew => "grew",
            Judgement::ScriptFailed => "script_failed",
            Judgement::Interrupted => "interrupted",
            Judgement::TimedOut => "timed_out",
        }
    }

    /// Whether `--strict` refuses what passes without it: it went through, and that is not all there is to say.
    pub fn is_uncertain(self) -> bool {
        matches!(self, Judgement::Tight | Judgement::Depends | Judgement::NotMeasured)
    }
}

/// How far what a real card shows was from what was said, in 19 of 20 runs that others measured: as a part of PyTorch's
/// memory. `bench/results/accuracy.json` has these runs, and a test compares.
const ERROR: f64 = 0.021;

/// The same of runs with convolutions, whose work areas another version of cuDNN chooses otherwise.
const ERROR_OF_CONVOLUTIONS: f64 = 0.14;

impl Run {
    /// What is said of it.
    pub fn judgement(&self) -> Judgement {
        let rests_on_more = matches!(self.rests_on(), RestsOn::Little | RestsOn::Assumption);
        match self.verdict {
            Verdict::Fits if self.peak.is_none() => Judgement::NotMeasured,
            Verdict::Fits if rests_on_more || self.is_of_later() => Judgement::Depends,
            Verdict::Fits => match self.room_bytes() {
                None => Judgement::Needs,
                Some(room) if room < self.most_bytes() => Judgement::Tight,
                Some(_) => Judgement::Fits,
            },
            Verdict::DoesNotFit => Judgement::DoesNotFit,
            Verdict::Grew => Judgement::Grew,
            Verdict::ScriptFailed => Judgement::ScriptFailed,
            Verdict::Interrupted => Judgement::Interrupted,
            Verdict::TimedOut => Judgement::TimedOut,
        }
    }

    /// Whether what was not run may decide: later steps, of which each leaves something behind, batches that were left out
    /// of an evaluation, or an evaluation that was not reached.
    fn is_of_later(&self) -> bool {
        let is_unreached = self.whole.as_ref().is_some_and(|whole| !whole.unreached().is_empty());
        self.full_after().is_some()
            || self.is_of_unseen()
            || is_unreached && self.room_bytes().is_some()
    }

    /// Whether batches that were left out of an evaluation would decide. What is kept of each is often joined in the end,
    /// which takes as much again.
    fn is_of_unseen(&self) -> bool {
        let need = self.needed().map_or(0, |need| need.bytes);
        self.room_bytes().is_some_and(|room| room < need + 2 * self.unseen_bytes() && need <= room)
    }

    /// What a part of the training that was left out would take besides.
    pub fn unseen_bytes(&self) -> u64 {
        let beside = self.peak.as_ref().map_or(0, |peak| peak.device_bytes);
        self.whole.as_ref().map_or(0, |whole| whole.unseen_bytes(beside))
    }

    /// Memory that the run may have: what the card leaves to it, or its budget, whichever is less.
    pub(crate) fn room_bytes(&self) -> Option<u64> {
        let card = self.card.as_ref().map(gpus::Card::available_bytes);
        card.into_iter().chain(self.budget_bytes).min()
    }

    /// What it needs, at the most that unknown values can give, and our error on top.
    fn most_bytes(&self) -> u64 {
        let need = self.needed().map_or(0, |need| need.bytes);
        let most = match self.rests_on() {
            RestsOn::Range(most) => most.max(need),
            _ => need,
        };
        most + self.error_bytes()
    }

    /// What it needs, as well as that is known, without what other programs hold; `None` if it used no card.
    pub fn needed(&self) -> Option<Need> {
        let taken = self.peak.as_ref()?.device_bytes;
        let used = self.card.as_ref().map_or(0, |card| card.used_bytes);
        let replayed = self.floor_bytes.map(|floor| floor.saturating_sub(used));
        let replayed = replayed.filter(|floor| *floor <= taken);
        let by_replay = replayed.map(|bytes| Need { bytes, known: NeedKnown::Replay });
        Some(self.need.or(by_replay).unwrap_or(Need { bytes: taken, known: NeedKnown::Taken }))
    }

    /// Goes by the budget, if there is one and the run went as far as it went without running out of memory.
    pub fn judge_by_budget(&mut self) {
        let Some((budget, peak)) = self.budget_bytes.zip(self.peak.as_ref()) else { return };
        // Of a run that was broken off, what its tensors took is certain: what was cached may not be needed.
        let need = match &self.unfinished {
            Some(_) => {
                let unrecorded = self.unattributed.as_ref().map_or(0, |rest| rest.bytes);
                peak.allocated.bytes + unrecorded + peak.contexts * peak.context_bytes
            }
            None => self.needed().map_or(0, |need| need.bytes),
        };
        let is_by_budget = self.verdict == Verdict::DoesNotFit && self.out_of_memory.is_none();
        (self.verdict, self.exit_code) = match self.verdict {
            Verdict::Fits | Verdict::Interrupted | Verdict::TimedOut if budget < need => {
                (Verdict::DoesNotFit, 1)
            }
            _ if is_by_budget && need <= budget && self.unfinished.is_none() => (Verdict::Fits, 0),
            verdict => (verdict, self.exit_code),
        };
    }

    /// Whether our own error could decide on a card of the catalogue, where the run needs so many bytes.
    pub fn is_tight_on(&self, card: &gpus::Card, need: u64) -> bool {
        card.memory_bytes < need + self.error_of_pytorch(need) + card.context_error()
    }

    /// How far that may be off on a real card.
    pub fn error_bytes(&self) -> u64 {
        self.needed().map_or(0, |need| self.error_of(need.bytes))
    }

    /// How far off a need of so many bytes may be.
    pub fn error_of(&self, bytes: u64) -> u64 {
        self.error_of_pytorch(bytes) + self.card.as_ref().map_or(0, gpus::Card::context_error)
    }

    /// The part of it that is not the context's.
    fn error_of_pytorch(&self, bytes: u64) -> u64 {
        let contexts = self.peak.as_ref().map_or(0, |peak| peak.contexts * peak.context_bytes);
        let of_pytorch = bytes.saturating_sub(contexts);
        let part = if self.workspaces.is_empty() { ERROR } else { ERROR_OF_CONVOLUTIONS };
        (of_pytorch as f64 * part) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The errors of a table's rows, by whether the run has convolutions.
    fn errors() -> Vec<(bool, f64)> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/results/accuracy.json");
        let text = std::fs::read_to_string(path).expect("the results of the bench");
        let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let tables = results["tables"].as_array().expect("tables");
        let runs = tables.iter().find(|table| table["title"] == "Each run").expect("the runs");
        let columns: Vec<&String> = runs["columns"].as_object().expect("columns").keys().collect();
        let nets = ["MobileNet", "RegNet", "ResNet", "VGG"];
        let row = |row: &serde_json::Value| {
            let name = row[0].as_str().expect("a name");
            let error = row.as_array().expect("a row").get(5).and_then(|cell| cell.as_f64());
            (nets.iter().any(|net| name.contains(net)), error.expect("an error"))
        };
        assert!(columns.contains(&&"error".to_owned()));
        runs["rows"].as_array().expect("rows").iter().map(row).collect()
    }

    #[test]
    fn the_error_is_that_of_runs_on_real_cards() {
        for (is_convolution, part) in [(false, ERROR), (true, ERROR_OF_CONVOLUTIONS)] {
            let of_kind: Vec<f64> = errors()
                .iter()
                .filter(|row| row.0 == is_convolution)
                .map(|row| row.1.abs())
                .collect();
            let within = of_kind.iter().filter(|error| **error <= part).count();
            assert!(
                12 <= of_kind.len() && of_kind.len() * 19 <= within * 20,
                "{within} of {}",
                of_kind.len()
            );
            // Nor is it wider than these runs ask for.
            assert!(of_kind.iter().any(|error| part * 0.9 <= *error), "{of_kind:?}");
        }
    }
}
