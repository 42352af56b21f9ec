//! A difference in words: what text and Markdown share.

use anatomy::bytes;
use diff::{Change, Difference, Folded, LineRow, Named, Place, Status, TensorRow};

use crate::sections::columns::place as place_text;

/// The answer in one sentence.
pub(super) fn answer(difference: &Difference) -> String {
    let Change { a, b } = difference.allocated;
    let (before, after) = (bytes::text(a), bytes::text(b));
    let verdict = match difference.allocated.delta() {
        0 => format!("B needs as much as A at its peak: {after}"),
        delta => {
            let size = bytes::text(delta.unsigned_abs());
            let word = if 0 < delta { "more" } else { "less" };
            format!("B needs {size} {word} than A at its peak: {after} instead of {before}")
        }
    };
    verdict + &mostly(difference)
}

/// `, mostly activations (+1.10 GiB)`: the category that changed most, in the direction of the whole.
fn mostly(difference: &Difference) -> String {
    let whole = difference.allocated.delta();
    let same_way = |row: &&Named| row.bytes.delta().signum() == whole.signum();
    let rows = difference.categories.iter().filter(same_way);
    let most = rows.max_by_key(|row| row.bytes.delta().unsigned_abs());
    match most.filter(|row| whole != 0 && row.name != "unknown") {
        Some(row) => format!(", mostly {} ({})", category(&row.name), delta(row.bytes)),
        None => String::new(),
    }
}

/// `+1.10 GiB`, `-3.0 MiB`, `0 B`.
pub(super) fn delta(change: Change) -> String {
    let size = bytes::text(change.delta().unsigned_abs());
    match change.delta().signum() {
        1 => format!("+{size}"),
        -1 => format!("-{size}"),
        _ => size,
    }
}

/// `+12 %`; nothing if there was nothing.
pub(super) fn percent(change: Change) -> String {
    if change.a == 0 || change.delta() == 0 {
        return String::new();
    }
    let share = 100.0 * change.delta() as f64 / change.a as f64;
    match share.abs() {
        tiny if tiny < 1.0 => format!("{}<1 %", if 0.0 < share { '+' } else { '-' }),
        huge if 1000.0 <= huge => format!("× {:.0}", change.b as f64 / change.a as f64),
        _ => format!("{share:+.0} %"),
    }
}

/// `+` for what is new, `-` for what is gone, `~` for what changed.
pub(super) fn sign(change: Change) -> &'static str {
    match change.status() {
        Status::New => "+",
        Status::Gone => "-",
        Status::Grown | Status::Shrunk => "~",
        Status::Same => " ",
    }
}

/// The totals that both sides know.
pub(super) fn totals(difference: &Difference) -> Vec<(&'static str, Change)> {
    let mut rows = vec![("allocated", difference.allocated), ("reserved", difference.reserved)];
    rows.extend(difference.device.map(|change| ("on the card", change)));
    rows.extend(difference.floor.map(|change| ("smallest card", change)));
    rows
}

/// `model copies`.
pub(super) fn category(name: &str) -> String {
    name.replace('_', " ")
}

pub(super) fn operator(row: &Named) -> String {
    if row.name.is_empty() { "no operator known".to_owned() } else { row.name.clone() }
}

/// `encoder.layers.{0-11}.attn ×12 Attention`.
pub(super) fn module(row: &Folded) -> String {
    let class = if row.class == row.path { "" } else { &row.class };
    let text = match (row.path.as_str(), row.times) {
        ("", _) => "outside of modules".to_owned(),
        (path, 1) => format!("{path} {class}"),
        (path, times) => format!("{path} ×{times} {class}"),
    };
    text.trim_end().to_owned()
}

/// `train.py:31 (was 28) in main`.
pub(super) fn line(row: &LineRow) -> String {
    let Place { file, line, function } = &row.place;
    if file.is_empty() {
        return "no line known".to_owned();
    }
    let was = match &row.was {
        None => String::new(),
        Some(was) if was.file == *file => format!(" (was {})", was.line),
        Some(was) => format!(" (was {})", place_text(last(&was.file), was.line)),
    };
    let function = if function.is_empty() { "".to_owned() } else { format!(" in {function}") };
    format!("{}{was}{function}", place_text(file, *line))
}

/// `12 × float32[8, 512] → float32[16, 512] activations by addmm` and `in layers.{0-11}.fc`.
pub(super) fn tensor(row: &TensorRow) -> [String; 2] {
    if row.category.is_empty() {
        return ["tensors that a report does not list".to_owned(), String::new()];
    }
    let count = match (row.count.a, row.count.b) {
        (0 | 1, 1) | (1, 0) => String::new(),
        (a, b) if a == b || a == 0 => format!("{b} × "),
        (a, 0) => format!("{a} × "),
        (a, b) => format!("{a} → {b} × "),
    };
    let what = match &row.was {
        Some(was) => format!("{was} → {} ", row.what),
        None if row.what.is_empty() => String::new(),
        None => format!("{} ", row.what),
    };
    // `ConvolutionBackward0.input in encoder.0`: who keeps it, and there.
    let (name, kept_in) = row.name.split_once(" in ").unwrap_or((&row.name, ""));
    let what = format!("{count}{what}{}", category(&row.category));
    match (name, row.operator.as_str(), kept_in, row.module.as_str()) {
        // A parameter's name says its module.
        (name, _, "", module) if name.contains(module) && !name.is_empty() => {
            [what, name.to_owned()]
        }
        ("", "", _, module) => [what, within(module)],
        ("", operator, _, module) => [format!("{what} by {operator}"), within(module)],
        (name, _, "", module) => [format!("{what} {name}"), within(module)],
        (name, _, kept_in, _) => [format!("{what} {name}"), within(kept_in)],
    }
}

fn within(module: &str) -> String {
    if module.is_empty() { String::new() } else { format!("in {module}") }
}

/// Rows of tensors, if they say more than those of lines: a snapshot knows only sizes.
pub(super) fn tensors(difference: &Difference) -> &[TensorRow] {
    let says_more = |row: &TensorRow| !(row.what.is_empty() && row.module.is_empty());
    if difference.tensors.iter().any(says_more) { &difference.tensors } else { &[] }
}

/// ` at net.py:12`, or nothing.
pub(super) fn at(place: &Place) -> String {
    match place_text(last(&place.file), place.line) {
        text if text.is_empty() => text,
        text => format!(" at {text}"),
    }
}

fn last(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// `run-a · peak in backward, step 2 · NVIDIA GeForce RTX 3090 · torch 2.15.0`.
pub(super) fn given(side: &diff::Given) -> String {
    let torch = if side.torch.is_empty() { String::new() } else { format!("torch {}", side.torch) };
    let ran_out = if side.ran_out { "ran out of memory" } else { "" };
    let when = match side.when.as_str() {
        "" => String::new(),
        when => format!("peak in {when}"),
    };
    let parts = [side.name.as_str(), &when, &side.card, &torch, ran_out];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_their_sign() {
        let text = |a, b| (delta(Change { a, b }), percent(Change { a, b }), sign(Change { a, b }));
        assert_eq!(text(1 << 20, 3 << 20), ("+2.0 MiB".into(), "+200 %".into(), "~"));
        assert_eq!(text(1 << 20, 0), ("-1.0 MiB".into(), "-100 %".into(), "-"));
        assert_eq!(text(0, 512), ("+512 B".into(), String::new(), "+"));
        assert_eq!(text(1000, 999).1, "-<1 %");
        assert_eq!(text(5, 5), ("0 B".into(), String::new(), " "));
    }
}
