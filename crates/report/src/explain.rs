//! A recording or snapshot explained: the sections of a report without a run around them.

use anatomy::{Anatomy, Dissection};

use crate::bytes;
use crate::sections::words::{count, place};
use crate::sections::{SCREEN, Unfold, sections};
use crate::terminal::{LABEL_WIDTH, Palette, when};

/// A file taken apart.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// The file, as it was named.
    pub file: String,
    /// The card's number.
    pub device: u32,
    /// The version of torch; empty if not known.
    pub torch: String,
    /// Whether the recording was brought to its end.
    pub complete: bool,
    /// Who holds every byte.
    pub anatomy: Anatomy,
    /// What the reader should know about these numbers.
    pub notes: Vec<String>,
}

/// The explanation as text.
pub fn explain(explanation: &Explanation, palette: Palette, unfold: &Unfold) -> String {
    let anatomy = &explanation.anatomy;
    let mut text = heading(explanation);
    let mut line = |label: &str, content: &str| {
        let style = palette.label;
        text += format!("{style}{label:LABEL_WIDTH$}{style:#}{content}").trim_end();
        text.push('\n');
    };
    let mut used = 1 + explanation.notes.len();
    for (label, content) in peaks(anatomy) {
        used += 1;
        line(label, &content);
    }
    let room = SCREEN.saturating_sub(used);
    for section in sections(anatomy, shown(anatomy), unfold, room) {
        for (index, row) in section.rows.iter().enumerate() {
            line(if index == 0 { section.label } else { "" }, row);
        }
    }
    explanation.notes.iter().for_each(|note| line("note", note));
    text
}

fn heading(explanation: &Explanation) -> String {
    let mut parts = vec![format!("{}  device {}", explanation.file, explanation.device)];
    if !explanation.torch.is_empty() {
        parts.push(format!("torch {}", explanation.torch));
    }
    parts.push(format!("{} events", count(explanation.anatomy.events as u64)));
    parts.join(" · ") + "\n"
}

/// Where memory ran out, else where most was allocated.
fn shown(anatomy: &Anatomy) -> &Dissection {
    anatomy.out_of_memory.as_ref().map_or(&anatomy.allocated_peak, |refusal| &refusal.at)
}

fn peaks(anatomy: &Anatomy) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(refusal) = &anatomy.out_of_memory {
        let (tried, free) = (bytes::text(refusal.tried_bytes), bytes::text(refusal.free_bytes));
        lines.push(("tried", format!("{tried} with {free} free{}", moment(&refusal.at))));
    }
    let (peak, reserved) = (&anatomy.allocated_peak, &anatomy.reserved_peak);
    let size = bytes::text(peak.allocated);
    let requested = bytes::text(peak.requested);
    lines.push(("peak", format!("allocated {size}{} (requested {requested})", moment(peak))));
    lines.push(("", format!("reserved {}{}", bytes::text(reserved.reserved), moment(reserved))));
    lines.extend(cause(anatomy).map(|cause| ("", cause)));
    lines
}

fn moment(at: &Dissection) -> String {
    let phase = at.when.phase.map_or(String::new(), |phase| phase.name().replace('_', " "));
    when(&phase, u64::from(at.when.step))
}

/// `raised by addmm in encoder.fc at train.py:12`: the allocation that made the peak.
pub(crate) fn cause(anatomy: &Anatomy) -> Option<String> {
    let origin = anatomy.allocated_peak.raised_by.as_ref()?;
    let operator = if origin.operator.is_empty() { &origin.node } else { &origin.operator };
    let parts = [
        (" by ", operator.as_str()),
        (" in ", origin.module.as_str()),
        (" at ", &place(&origin.file, origin.line)),
    ];
    let known: String = parts
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(word, text)| format!("{word}{text}"))
        .collect();
    (!known.is_empty()).then(|| format!("raised{known}"))
}
