//! The difference as text: the answer first, then what grew and what shrank, the greatest change first.

use anatomy::bytes;
use diff::{Change, Difference, Status};

use super::words;
use crate::sections::words::{bar, begin, end, sentence};
use crate::sections::{COLUMNS, Section};
use crate::terminal::{LABEL_WIDTH, Palette};

/// Rows of each section, unless all are wanted.
const ROWS: usize = 6;
/// Columns of the bars of categories.
const BAR: u64 = 28;
/// Columns in front of a name: sign, change, before and after.
const NUMBERS: usize = 42;

/// The whole; `all` shows every row that changed.
pub fn terminal(difference: &Difference, palette: Palette, all: bool) -> String {
    let section = |label, rows| Section { label, rows };
    let most = if all { usize::MAX } else { ROWS };
    let mut sections = vec![
        section("A", vec![words::given(&difference.a)]),
        section("B", vec![words::given(&difference.b)]),
        section("peak", totals(difference)),
        section("causes", findings(difference)),
        section("held", categories(difference)),
        section("modules", modules(difference, most)),
        section("lines", lines(difference, most, all)),
        section("tensors", tensors(difference, most, all)),
    ];
    if all {
        sections.push(section("operator", operators(difference)));
    }
    sections.push(section("phases", phases(difference)));
    let texts = difference.renamed.iter().chain(&difference.notes);
    let notes = texts.map(|note| section("note", sentence(note, COLUMNS)));
    sections.extend(notes);
    let style = match difference.allocated.delta().signum() {
        1 => palette.bad,
        -1 => palette.good,
        _ => anstyle::Style::new(),
    };
    let mut text = format!("{style}{}{style:#}\n", words::answer(difference));
    for Section { label, rows } in sections {
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        for (label, row) in labels.zip(rows) {
            let style = palette.label;
            let line = format!("{style}{label:LABEL_WIDTH$}{style:#}{row}");
            text += line.trim_end();
            text.push('\n');
        }
    }
    text
}

/// `~  +1.10 GiB    1.10 GiB →   2.20 GiB  activations`.
fn row(change: Change, name: &str) -> String {
    let (before, after) = (size(change.a), size(change.b));
    let numbers = format!("{before:>11} → {after:<11}");
    format!("{} {:>12} {numbers}  {name}", words::sign(change), words::delta(change))
}

fn size(bytes: u64) -> String {
    if bytes == 0 { "–".to_owned() } else { bytes::text(bytes) }
}

/// Rows that changed, `most` of them, and what the others change together.
fn changed<Row>(
    rows: &[Row],
    most: usize,
    change: fn(&Row) -> Change,
    text: impl Fn(&Row) -> Vec<String>,
) -> Vec<String> {
    let changed: Vec<&Row> =
        rows.iter().filter(|row| change(row).status() != Status::Same).collect();
    let mut texts: Vec<String> = changed.iter().take(most).flat_map(|row| text(row)).collect();
    let left = changed.iter().skip(most);
    let rest = left.clone().fold(Change::default(), |all, row| Change {
        a: all.a + change(row).a,
        b: all.b + change(row).b,
    });
    let count = left.count();
    if count != 0 {
        let rows = if count == 1 { "row" } else { "rows" };
        let delta = words::delta(rest);
        texts.push(format!("  {delta:>12} {:24}  … {count} more {rows}", ""));
    }
    texts
}

fn totals(difference: &Difference) -> Vec<String> {
    let rows = words::totals(difference).into_iter().map(|(name, change)| {
        let percent = words::percent(change);
        row(change, &format!("{name} {percent}"))
    });
    rows.collect()
}

fn categories(difference: &Difference) -> Vec<String> {
    let greatest = difference.categories.iter().map(|row| row.bytes.delta().unsigned_abs()).max();
    changed(
        &difference.categories,
        usize::MAX,
        |row| row.bytes,
        |category| {
            let delta = category.bytes.delta().unsigned_abs();
            let bar = bar(delta, greatest.unwrap_or(0), BAR);
            let name = words::category(&category.name);
            vec![row(category.bytes, &format!("{} {bar}", begin(&name, 13)))]
        },
    )
}

fn modules(difference: &Difference, most: usize) -> Vec<String> {
    // All in one row says nothing.
    if difference.modules.iter().all(|row| row.path.is_empty()) {
        return Vec::new();
    }
    let folded = diff::fold(&difference.modules);
    let text = |module: &diff::Folded| vec![row(module.own, &fitted(words::module(module)))];
    changed(&folded, most, |row| row.own, text)
}

/// The end of a name, which tells most, in what is left of a line.
fn fitted(name: String) -> String {
    end(&name, COLUMNS - NUMBERS)
}

fn lines(difference: &Difference, most: usize, all: bool) -> Vec<String> {
    if difference.lines.iter().all(|row| row.place.file.is_empty()) {
        return Vec::new();
    }
    let text = |line: &diff::LineRow| {
        let mut rows = vec![row(line.bytes, &fitted(words::line(line)))];
        if !line.source.is_empty() {
            let source = if all { line.source.clone() } else { short(&line.source) };
            rows.push(format!("{:NUMBERS$}  {source}", ""));
        }
        rows
    };
    changed(&difference.lines, most, |row| row.bytes, text)
}

fn short(source: &str) -> String {
    begin(source, COLUMNS - NUMBERS - 2).trim_end().to_owned()
}

fn tensors(difference: &Difference, most: usize, all: bool) -> Vec<String> {
    let text = |tensor: &diff::TensorRow| {
        let name = words::tensor(tensor) + &words::at(&tensor.place);
        if all || name.chars().count() <= COLUMNS - NUMBERS {
            return vec![row(tensor.bytes, &name)];
        }
        let mut parts = sentence(&name, COLUMNS - NUMBERS).into_iter();
        let first = row(tensor.bytes, &parts.next().unwrap_or_default());
        let rest = parts.map(|part| format!("{:NUMBERS$}  {part}", ""));
        std::iter::once(first).chain(rest).collect()
    };
    changed(&difference.tensors, most, |row| row.bytes, text)
}

fn operators(difference: &Difference) -> Vec<String> {
    let text = |named: &diff::Named| vec![row(named.bytes, &words::operator(named))];
    changed(&difference.operators, usize::MAX, |row| row.bytes, text)
}

fn phases(difference: &Difference) -> Vec<String> {
    let text = |phase: &diff::PhaseRow| vec![row(phase.allocated, &words::category(&phase.name))];
    changed(&difference.phases, usize::MAX, |row| row.allocated, text)
}

fn findings(difference: &Difference) -> Vec<String> {
    let mut changed: Vec<&diff::FindingRow> =
        difference.findings.iter().filter(|row| row.bytes.status() != Status::Same).collect();
    changed.sort_by_key(|row| std::cmp::Reverse(row.bytes.delta().unsigned_abs()));
    let text = |finding: &&diff::FindingRow| {
        let word = match finding.bytes.status() {
            Status::New => "new: ",
            Status::Gone => "gone: ",
            _ => "",
        };
        let title = format!("{word}{}", finding.title);
        row(finding.bytes, begin(&title, COLUMNS - NUMBERS).trim_end())
    };
    changed.iter().map(text).collect()
}
