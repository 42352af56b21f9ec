//! Facts of the run, texts, and the rows that events refer to, both ways.

use super::fields::{Words, number};
use crate::owner::{Frame, FrameId, Owner, Stack, StackId, Text, TextId};
use crate::{About, Counters, Module, Parameters, Recording, Saved};

/// The lines of what is known of the run.
pub(super) fn about_lines(about: &About) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, value) in [("torch", &about.torch), ("settings", &about.allocator_settings)] {
        if !value.is_empty() {
            lines.push(format!("{key} {value}"));
        }
    }
    let device = ("device", u64::from(about.device));
    for (key, value) in [("memory", about.memory_bytes), ("context", about.context_bytes), device] {
        if value != 0 {
            lines.push(format!("{key} {value}"));
        }
    }
    lines.extend(about.parameters.map(|parameters| {
        let Parameters { total, trainable, frozen, unused } = parameters;
        format!("parameters total {total} trainable {trainable} frozen {frozen} unused {unused}")
    }));
    lines.extend(
        about.saved.map(|Saved { kept, outputs }| format!("saved kept {kept} outputs {outputs}")),
    );
    lines.extend(about.counters.map(|counters| {
        let Counters { allocated_peak, reserved_peak, requested_peak, allocated, reserved } =
            counters;
        format!(
            "counters allocated_peak {allocated_peak} reserved_peak {reserved_peak} \
             requested_peak {requested_peak} allocated {allocated} reserved {reserved}"
        )
    }));
    lines.extend(about.facts.iter().map(|fact| {
        format!("fact {}", serde_json::to_string(&fact).expect("two texts serialise"))
    }));
    lines.extend(about.complete.then(|| "complete".to_owned()));
    lines
}

/// Takes a line of [`about_lines`]; false if it is none.
pub(super) fn about(about: &mut About, key: &str, rest: &str) -> Result<bool, String> {
    match key {
        "torch" => about.torch = rest.to_owned(),
        "settings" => about.allocator_settings = rest.to_owned(),
        "fact" => {
            let fact: Result<(String, String), _> = serde_json::from_str(rest);
            let (kind, value) = fact.map_err(|_| "a fact is [\"kind\", \"value\"]")?;
            about.facts.add(&kind, &value);
        }
        _ => return numbers(about, key, &Words::of(rest)),
    }
    Ok(true)
}

fn numbers(about: &mut About, key: &str, words: &Words<'_>) -> Result<bool, String> {
    match key {
        "memory" => about.memory_bytes = words.number(0)?,
        "context" => about.context_bytes = words.number(0)?,
        "device" => about.device = row_number(words.at(0)?)?,
        "complete" => about.complete = true,
        "parameters" => {
            about.parameters = Some(Parameters {
                total: words.after("total")?,
                trainable: words.after("trainable")?,
                frozen: words.after("frozen")?,
                unused: words.after("unused")?,
            });
        }
        "saved" => {
            about.saved =
                Some(Saved { kept: words.after("kept")?, outputs: words.after("outputs")? });
        }
        "counters" => {
            about.counters = Some(Counters {
                allocated_peak: words.after("allocated_peak")?,
                reserved_peak: words.after("reserved_peak")?,
                requested_peak: words.after("requested_peak")?,
                allocated: words.after("allocated")?,
                reserved: words.after("reserved")?,
            });
        }
        _ => return Ok(false),
    }
    words.nothing_else()?;
    Ok(true)
}

/// The lines of texts, frames, stacks, owners and modules.
pub(super) fn table_lines(recording: &Recording) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, text) in recording.texts.iter().enumerate().skip(1) {
        let text = serde_json::to_string(text).expect("a text serialises");
        lines.push(format!("text {index} {text}"));
    }
    let stack = |key: &str, stack: Option<StackId>| {
        stack.map(|stack| format!(" {key} {}", stack.0)).unwrap_or_default()
    };
    for (index, Frame { file, function, line, source }) in recording.frames.iter().enumerate() {
        let (file, function) = (file.0, function.0);
        let source = match source.0 {
            0 => String::new(),
            text => format!(" source {text}"),
        };
        lines.push(format!("frame {index} file {file} function {function} line {line}{source}"));
    }
    for (index, Stack { frame, caller }) in recording.stacks.iter().enumerate() {
        lines.push(format!("stack {index} frame {}{}", frame.0, stack("caller", *caller)));
    }
    for (index, owner) in recording.owners.iter().enumerate() {
        let (module, operator, node) = (owner.module.0, owner.operator.0, owner.node.0);
        let stack = stack("stack", owner.stack);
        lines.push(format!("owner {index} module {module} operator {operator} node {node}{stack}"));
    }
    for (index, Module { path, class }) in recording.modules.iter().enumerate() {
        lines.push(format!("module {index} path {} class {}", path.0, class.0));
    }
    lines
}

/// `1 "train.py"`: a JSON string, so that line breaks and blanks survive.
pub(super) fn text(texts: &mut Text, rest: &str) -> Result<(), String> {
    let (number, quoted) = rest.split_once(' ').ok_or(format!("`{rest}` ends too early"))?;
    let text: String = serde_json::from_str(quoted.trim())
        .map_err(|_| format!("`{quoted}` is not a text in quotes"))?;
    next("text", number, texts.len())?;
    let before = texts.len();
    texts.intern(&text);
    if texts.len() == before {
        return Err(format!("the text {quoted} has a number already"));
    }
    Ok(())
}

/// Takes a frame, stack, owner or module; false if it is none.
pub(super) fn row(recording: &mut Recording, words: &Words<'_>) -> Result<bool, String> {
    let texts = recording.texts.len();
    let text = |key: &'static str| among("text", words.small(key)?, texts).map(TextId);
    let stacks = recording.stacks.len();
    let stack = |key: &'static str| {
        let number = words.small_if(key)?;
        number.map(|number| among("stack", number, stacks).map(StackId)).transpose()
    };
    let is_next = |kind: &str, length: usize| next(kind, words.at(1)?, length);
    match words.at(0)? {
        "frame" => {
            is_next("frame", recording.frames.len())?;
            let (file, function) = (text("file")?, text("function")?);
            let (line, source) = (words.small("line")?, text("source")?);
            recording.frames.push(Frame { file, function, line, source });
        }
        "stack" => {
            is_next("stack", stacks)?;
            let frame = among("frame", words.small("frame")?, recording.frames.len())?;
            recording.stacks.push(Stack { frame: FrameId(frame), caller: stack("caller")? });
        }
        "owner" => {
            is_next("owner", recording.owners.len())?;
            let (module, operator, node) = (text("module")?, text("operator")?, text("node")?);
            recording.owners.push(Owner { module, operator, node, stack: stack("stack")? });
        }
        "module" => {
            is_next("module", recording.modules.len())?;
            recording.modules.push(Module { path: text("path")?, class: text("class")? });
        }
        _ => return Ok(false),
    }
    words.nothing_else()?;
    Ok(true)
}

fn row_number(word: &str) -> Result<u32, String> {
    u32::try_from(number(word)?).map_err(|_| format!("`{word}` is too large"))
}

/// Rows are numbered without gaps.
fn next(kind: &str, word: &str, length: usize) -> Result<(), String> {
    if row_number(word)? as usize != length {
        return Err(format!("{kind} {word} comes where {length} is next"));
    }
    Ok(())
}

fn among(kind: &str, number: u32, length: usize) -> Result<u32, String> {
    if length <= number as usize {
        return Err(format!("{kind} {number} is not among {length}"));
    }
    Ok(number)
}
