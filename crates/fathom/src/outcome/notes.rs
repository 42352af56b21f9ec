//! What the reader should know about the numbers of a run.

use report::Run;

use super::cudnn_text;
use super::files::Seen;
use crate::settings::Settings;

pub(super) fn notes(all: &[Seen], settings: &Settings, run: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(main) = all.first() else { return notes };
    let process = main.process.as_ref();
    if let (Some(card), Some(process)) = (&settings.card, process)
        && let Some(note) = missing_kernels(card, &process.architectures)
    {
        notes.push(note);
    }
    if let Some(process) = process
        && 0 < process.refusal_count
        && run.out_of_memory.is_none()
    {
        let count = process.refusal_count;
        notes.push(format!(
            "ran out of memory {count} times on the way; the script caught it and went on"
        ));
    }
    for unreal in process.iter().flat_map(|process| &process.unreal) {
        let place = match (&unreal.file, unreal.line) {
            (Some(file), Some(line)) => format!(" at {file}:{line}"),
            _ => String::new(),
        };
        notes.push(format!(
            "the result of {}{place} has a size that depends on values the phantom does not compute",
            unreal.operator
        ));
    }
    if run.peak.is_some() {
        notes.push(
            "kernels did not run: losses and other results of large tensors are not real"
                .to_owned(),
        );
    }
    if !main.page.notes.is_empty() {
        let names: Vec<&str> = main.page.notes.lines().take(8).collect();
        notes.push(format!("not simulated, answered with \"not supported\": {}", names.join(", ")));
    }
    if run.peak.is_some() && process.is_none() {
        notes.push(
            "the script's Python was not reached: only the card's own count is known".to_owned(),
        );
    }
    if let Some((asked, own)) = main.foreign_cudnn() {
        notes.push(format!(
            "workspaces were asked of cuDNN {}, since torch's own {} cannot answer without a card",
            cudnn_text(asked),
            cudnn_text(own)
        ));
    }
    notes
}

/// Cards that torch's build no longer has kernels for run here, and would not on the real card.
fn missing_kernels(card: &gpus::Card, architectures: &[String]) -> Option<String> {
    let (major, minor) = card.compute_capability;
    let mut oldest = (u32::MAX, 0);
    for name in architectures {
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        let Ok(number) = digits.parse::<u32>() else { continue };
        let (built_major, built_minor) = (number / 10, number % 10);
        let runs = (built_major == major && built_minor <= minor)
            || (name.starts_with("compute") && (built_major, built_minor) <= (major, minor));
        if runs {
            return None;
        }
        oldest = oldest.min((built_major, built_minor));
    }
    (oldest.0 != u32::MAX).then(|| {
        format!(
            "this torch has no kernels for compute capability {major}.{minor} (built for: {}): it would not run on the real card",
            architectures.join(", ")
        )
    })
}
