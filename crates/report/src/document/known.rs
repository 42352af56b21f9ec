//! How the numbers are known, what was not seen, and how to repeat them.

use serde::Serialize;
use study::Run;

use super::sentence;
use crate::markup::{block, plain};

const BYTES: &str = "Allocated and reserved bytes: PyTorch's own allocator ran, on a simulated GPU; kernels did not.";
const TIME: &str = "Time of a step: from counted operations and bytes, and the GPU's speeds.";

#[derive(Clone, Debug, Default, Serialize)]
pub struct Known {
    /// Card, torch, cuDNN: name and value.
    pub software: Vec<(&'static str, String)>,
    pub measured: Vec<String>,
    pub modelled: Vec<String>,
    pub assumed: Vec<String>,
    pub not_seen: Vec<String>,
    pub notes: Vec<String>,
    /// Commands that give these numbers again.
    pub commands: Vec<String>,
    pub trials: usize,
    pub remembered: usize,
}

impl Known {
    pub fn of(run: &Run) -> Known {
        let software = &run.software;
        let card = run.card.as_ref().map_or("none named: memory is unlimited".to_owned(), |card| {
            card.shown_title().to_owned()
        });
        let named = [
            ("GPU", card),
            ("torch", software.torch.clone()),
            ("CUDA", software.cuda.clone()),
            ("cuDNN", software.cudnn.clone()),
            ("Python", software.python.clone()),
        ];
        let mut known = Known {
            software: named.into_iter().filter(|row| !row.1.is_empty()).collect(),
            notes: run.warnings.iter().chain(&run.notes).cloned().collect(),
            ..Known::default()
        };
        if run.peak.is_none() {
            known.not_seen =
                vec!["The GPU's memory: the script ended before it used the GPU.".to_owned()];
            return known;
        }
        known.measured.push(BYTES.to_owned());
        match run.card.as_ref().is_none_or(gpus::Card::is_context_assumed) {
            true => known.assumed.push("The size of the CUDA context.".to_owned()),
            false => known.measured.push("The CUDA context: on such a GPU.".to_owned()),
        }
        if let Some(text) = crate::workspaces_sentence(run) {
            known.notes.retain(|note| *note != text);
            known.measured.push(sentence(&text));
        }
        known
            .assumed
            .extend(run.decisions.iter().map(|it| format!("A value that nobody knows: {it}.")));
        known
            .modelled
            .extend(run.modelled.iter().map(|it| format!("By weights of the first step: {it}.")));
        known.not_seen = not_seen(run);
        known
    }

    /// Remedies stand with what they cost.
    pub fn has_modelled_time(&mut self) {
        self.modelled.insert(0, TIME.to_owned());
    }

    pub(super) fn markdown(&self) -> String {
        let software: Vec<String> =
            self.software.iter().map(|(name, value)| format!("{name} {}", plain(value))).collect();
        let mut text = format!("## How this is known\n\n{}.\n\n", software.join(" · "));
        let lists = [
            ("Measured", &self.measured),
            ("Modelled", &self.modelled),
            ("Assumed", &self.assumed),
            ("Not seen", &self.not_seen),
            ("Notes", &self.notes),
        ];
        for (name, rows) in lists {
            for row in rows {
                text += &format!("- **{name}.** {}\n", plain(row));
            }
        }
        let one = |count: usize, what: &str| match count {
            1 => format!("1 {what} was"),
            count => format!("{count} {what}s were"),
        };
        if 0 < self.trials + self.remembered {
            text += &format!("\n{} run", one(self.trials, "trial"));
            text += &match self.remembered {
                0 => ".\n".to_owned(),
                count => format!(", {} remembered.\n", one(count, "other")),
            };
        }
        if !self.commands.is_empty() {
            text += &format!(
                "\nThe same numbers again:\n\n{}",
                block("bash", &self.commands.join("\n"))
            );
        }
        text
    }
}

/// Parts of a training that no run has shown.
fn not_seen(run: &Run) -> Vec<String> {
    let mut rows = Vec::new();
    match &run.whole {
        None => rows
            .push("What comes after the first steps: evaluation, saving, later epochs.".to_owned()),
        Some(whole) => {
            if let Some(why) = whole.came.why() {
                rows.push(format!("What comes after the first steps: {why}."));
            }
            let names: Vec<String> =
                whole.unseen().iter().map(|phase| phase.name().replace('_', " ")).collect();
            if whole.came.why().is_none() && !names.is_empty() {
                rows.push(format!("Phases that neither run came to: {}.", names.join(", ")));
            }
        }
    }
    if run.ranks.is_none() {
        rows.push("Other processes of a distributed training: this is one process.".to_owned());
    }
    rows
}
