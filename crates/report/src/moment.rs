//! Moments of a run in words: when it was, and what was running.

use anatomy::{Anatomy, Origin};
use study::Beyond;

use crate::bytes;
use crate::explain::{by, operator};
use crate::sections::columns::{file_name, place};

/// ` in backward, step 2`; nothing where the phase is not known.
pub(crate) fn when(phase: &str, step: u64) -> String {
    match phase {
        "" => String::new(),
        "construction" => " in construction, before the first step".to_owned(),
        _ => format!(" in {phase}, step {step}"),
    }
}

/// `, in 6.layers.3 (Conv2d) at train.py:16`: what was running when the allocated peak was reached in a phase.
pub(crate) fn reached(anatomy: &Anatomy, phase: &str, is_all: bool) -> String {
    let Some(origin) = &anatomy.allocated_peak.raised_by else { return String::new() };
    let text = running(anatomy, origin, phase, is_all);
    if text.is_empty() { text } else { format!(",{text}") }
}

/// ` in the backward pass of 6.layers.3 (Conv2d) at train.py:16`, ` by addmm in encoder.fc (Linear) at train.py:12`.
fn running(anatomy: &Anatomy, origin: &Origin, phase: &str, is_all: bool) -> String {
    let file = if is_all { &origin.file } else { file_name(&origin.file) };
    let place = place(file, origin.line);
    let at = if place.is_empty() { place } else { format!(" at {place}") };
    let is_backward =
        is_node(if origin.operator.is_empty() { &origin.node } else { &origin.operator });
    if origin.module.is_empty() || !is_backward {
        return operator(origin) + &class(anatomy, &origin.module) + &at;
    }
    let of = if phase == "backward" { " in " } else { " in the backward pass of " };
    format!("{of}{}{}{at}", origin.module, class(anatomy, &origin.module))
}

/// Whether an operator is a node of autograd: `ConvolutionBackward0`.
fn is_node(operator: &str) -> bool {
    operator.trim_end_matches(|letter: char| letter.is_ascii_digit()).ends_with("Backward")
}

/// ` (Conv2d)`: the class of a module, where it is known.
fn class(anatomy: &Anatomy, module: &str) -> String {
    let rows = &anatomy.allocated_peak.modules;
    let row = rows.iter().find(|row| row.path == module && !module.is_empty());
    let class =
        row.map(|row| row.class.as_str()).filter(|class| !class.is_empty() && *class != module);
    class.map_or(String::new(), |class| format!(" ({class})"))
}

/// What the run would have held on a GPU with memory enough.
pub(crate) fn beyond(beyond: &Beyond, is_all: bool) -> String {
    let Beyond { need, peak, raised_by, cause, failure } = beyond;
    if need.is_none() {
        let why = failure.as_deref().unwrap_or("it did not come to its end");
        return format!("run again without a limit: {why}; what it needs is not known");
    }
    let peak_bytes = bytes::text(peak.bytes);
    let largest = cause.as_ref().map_or(String::new(), |(title, bytes)| {
        format!("; largest cause: {title}, {}", bytes::text(*bytes))
    });
    let when = when(&peak.phase, peak.step);
    if !is_all {
        let by = raised_by.as_ref().map(operator).unwrap_or_default();
        return format!("allocated {peak_bytes}{when}{by}");
    }
    let by = raised_by.as_ref().map(by).unwrap_or_default();
    format!("run again without a limit: allocated {peak_bytes}{when}{by}{largest}")
}
