//! One row for each script, and one for all.

use super::Check;
use crate::lines::Lines;
use crate::reader::Reader;
use crate::sections::columns::begin;

/// Columns of names, cards and sizes.
const NAME: usize = 28;
const CARD: usize = 12;
const SIZE: usize = 11;

/// `pass  train   rtx3090   15.87 GiB of 20.00 GiB`, and below it why not.
pub fn row(check: &Check, reader: Reader) -> String {
    let (style, word) = match check.passes() {
        true => (reader.good, "pass"),
        false => (reader.bad, "FAIL"),
    };
    let change = match &check.run.against {
        Some(_) => format!("  baseline {}", check.change()),
        None => String::new(),
    };
    let mut lines = Lines::new(reader);
    let first = format!(
        "  {} {} {:>SIZE$} of {:>SIZE$}{change}",
        begin(&check.name, NAME),
        begin(&check.card(), CARD),
        check.needs(),
        check.limit(),
    );
    lines.styled(style, word, &first);
    if !check.passes() {
        let place = check.place().map(|(file, line)| format!("at {file}:{line}"));
        for reason in check.reasons().into_iter().chain(place) {
            lines.paragraph(&format!("      {reason}"));
        }
    }
    lines.text()
}

/// `3 scripts: 2 pass, 1 fails`.
pub fn summary(checks: &[Check]) -> String {
    let passing = checks.iter().filter(|check| check.passes()).count();
    let scripts = if checks.len() == 1 { "script" } else { "scripts" };
    match checks.len() - passing {
        0 => format!("{} {scripts}: all pass\n", checks.len()),
        failing => {
            let fail = if failing == 1 { "fails" } else { "fail" };
            format!("{} {scripts}: {passing} pass, {failing} {fail}\n", checks.len())
        }
    }
}
