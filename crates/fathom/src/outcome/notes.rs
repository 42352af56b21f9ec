//! What the reader should know about the numbers of a run.

use crate::settings::Settings;
use study::{Run, SIMULATED};

use super::files::Seen;
use super::software::cudnn_text;
use crate::here::from_here;
use contract::files::Process;
use contract::files::process::Generation;

pub(super) fn notes(all: &[Seen], settings: &Settings, run: &Run) -> Vec<String> {
    let mut notes = settings.notes.clone();
    let Some(main) = all.first() else { return notes };
    let process = main.process.as_ref();
    if let Some(process) = process
        && 0 < process.refusal_count
        && run.out_of_memory.is_none()
    {
        let count = process.refusal_count;
        notes.push(format!(
            "ran out of memory {count} times on the way; the script caught it and went on"
        ));
    }
    for fault in process.iter().flat_map(|process| &process.faults) {
        let when = match (&fault.phase, fault.step) {
            (Some(phase), Some(step)) => format!(" in {phase}, step {step}"),
            _ => String::new(),
        };
        notes.push(format!("{}{when}: {} ({})", fault.loss, fault.error, fault.place));
    }
    if run.peak.is_some() {
        notes.push(SIMULATED.to_owned());
    }
    notes.extend(process.and_then(|process| rounds(process, run)));
    notes.extend(process.into_iter().flat_map(|process| &process.generations).map(full_length));
    if !main.page.notes.is_empty() {
        let names: Vec<&str> = main.page.notes.lines().take(8).collect();
        notes.push(format!("not simulated, answered with \"not supported\": {}", names.join(", ")));
    }
    if run.peak.is_some() && process.is_none() && !main.is_unread {
        notes.push(
            "the script's Python was not reached: only the card's own count is known".to_owned(),
        );
    }
    if let (Some(peak), Some(_)) = (&run.peak, process)
        && peak.reserved.bytes == 0
        && 0 < peak.beside_context()
    {
        notes.push(
            "PyTorch's caching allocator was off (`PYTORCH_NO_CUDA_MEMORY_CACHING`, or another allocator): \
             it counted nothing, and who holds the memory is not known"
                .to_owned(),
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

const ON_THE_CPU: &str = "the script trained on the CPU: many scripts have a flag for the GPU, such as `--device cuda`, \
     which `--help` of the script lists";

/// What a step is where no optimizer takes one.
fn rounds(process: &Process, run: &Run) -> Option<String> {
    let what = match process.rounds.as_deref()? {
        _ if run.steps == 0 => return None,
        // Optimizers of a script that leaves the card alone are not watched.
        _ if run.peak.is_none() => ON_THE_CPU,
        "update" => "a step is an update of the weights that the script writes itself",
        "backward" => {
            "no optimizer and no update of weights was seen: a step is a round of backward passes"
        }
        "call" => {
            "no backward pass: inference; a step is a call of a model with a new input, and all that comes of it"
        }
        _ => return None,
    };
    Some(what.to_owned())
}

/// What a token is, nobody knows: none ends a text.
fn full_length(generation: &Generation) -> String {
    let Generation { tokens, file, line } = generation;
    let at = match (file, line) {
        (Some(file), Some(line)) => format!(" at {}:{line}", from_here(file.clone())),
        _ => String::new(),
    };
    if *tokens == 0 {
        return format!(
            "tokens read{at} are not known: they are equal to none that the script looks for, and end no text (assumed)"
        );
    }
    format!(
        "`generate`{at} runs to its full length: {tokens} tokens (assumed; no token ends it earlier)"
    )
}

/// Cards that torch's build has no kernels for run here, and would not on the real card.
pub(super) fn missing_kernels(card: &gpus::Card, process: Option<&Process>) -> Option<String> {
    let Process { torch, architectures, .. } = process?;
    if gpus::has_kernels(architectures, card.compute_capability) != Some(false) {
        return None;
    }
    let (major, minor) = card.compute_capability;
    Some(format!(
        "torch {torch} has no kernels for compute capability {major}.{minor}: on the real GPU the script ends with \
         `no kernel image is available`"
    ))
}
