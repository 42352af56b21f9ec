//! The difference as text: the answer first, then what grew and what shrank, the greatest change first.

use anatomy::bytes;
use diff::{Change, Difference, Status};

use super::sentences;
use crate::lines::{LABEL_WIDTH, Lines};
use crate::reader::Reader;
use crate::sections::Section;
use crate::sections::columns::{bar, begin, end};

/// Rows of each section, unless all are wanted.
const ROWS: usize = 5;
/// Columns of the bars of categories.
const BAR: u64 = 28;
/// Columns in front of a name: sign, change, before and after.
const NUMBERS: usize = 39;
/// Columns of a name, at least.
const NAME: usize = 20;
/// Columns of a category's name.
const CATEGORY: usize = 13;

/// The whole; `all` shows every row that changed.
pub fn terminal(difference: &Difference, reader: Reader, all: bool) -> String {
    let section = |label, rows| Section { label, rows };
    let most = if all { usize::MAX } else { ROWS };
    // Columns of a name.
    let width = reader.columns.saturating_sub(LABEL_WIDTH + NUMBERS).max(NAME);
    let mut sections = vec![
        section("A", vec![sentences::given(&difference.a)]),
        section("B", vec![sentences::given(&difference.b)]),
        section("peak", totals(difference)),
        section("causes", findings(difference)),
        section("held", categories(difference, width, all)),
        section("modules", modules(difference, width, most)),
        section("lines", lines(difference, width, (most, all))),
        section("tensors", tensors(difference, width, most)),
    ];
    if all {
        sections.push(section("operator", operators(difference)));
    }
    sections.push(section("phases", phases(difference)));
    let texts = difference.renamed.iter().chain(&difference.notes);
    let notes = texts.map(|note| section("note", vec![note.clone()]));
    sections.extend(notes);
    let style = match difference.allocated.delta().signum() {
        1 => reader.bad,
        -1 => reader.good,
        _ => anstyle::Style::new(),
    };
    let mut lines = Lines::new(reader);
    lines.headline(style, &sentences::answer(difference));
    for Section { label, rows } in sections {
        lines.section(reader.label, label, rows);
    }
    lines.text()
}

/// `~  +1.10 GiB    1.10 GiB →   2.20 GiB  activations`.
fn row(change: Change, name: &str) -> String {
    let (before, after) = (size(change.a), size(change.b));
    let numbers = format!("{before:>10} → {after:<10}");
    format!("{} {:>11} {numbers}  {name}", sentences::sign(change), sentences::delta(change))
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
        let delta = sentences::delta(rest);
        texts.push(format!("  {delta:>11} {:23}  … {count} more {rows}", ""));
    }
    texts
}

fn totals(difference: &Difference) -> Vec<String> {
    let rows = sentences::totals(difference).into_iter().map(|(name, change)| {
        let percent = sentences::percent(change);
        row(change, &format!("{name} {percent}"))
    });
    rows.collect()
}

fn categories(difference: &Difference, width: usize, all: bool) -> Vec<String> {
    let delta = |row: &diff::Named| row.bytes.delta().unsigned_abs();
    let greatest = difference.categories.iter().map(delta).max().unwrap_or(0);
    let text = |category: &diff::Named| {
        let bar =
            bar(delta(category), greatest, BAR.min(width.saturating_sub(CATEGORY + 1) as u64));
        let name = sentences::category(&category.name);
        vec![row(category.bytes, &format!("{} {bar}", begin(&name, CATEGORY)))]
    };
    // What is too small for a bar shares a row.
    let mut rows = difference.categories.clone();
    rows.sort_by_key(|row| !all && delta(row) < greatest / 100);
    let shown = rows.iter().filter(|row| all || greatest / 100 <= delta(row));
    let shown = shown.filter(|row| delta(row) != 0).count();
    rows.retain(|row| delta(row) != 0);
    changed(&rows, shown, |row| row.bytes, text)
}

fn modules(difference: &Difference, width: usize, most: usize) -> Vec<String> {
    // All in one row says nothing.
    if difference.modules.iter().all(|row| row.path.is_empty()) {
        return Vec::new();
    }
    let folded = diff::fold(&difference.modules);
    let text =
        |module: &diff::Folded| vec![row(module.own, &end(&sentences::module(module), width))];
    changed(&folded, most, |row| row.own, text)
}

fn lines(difference: &Difference, width: usize, (most, all): (usize, bool)) -> Vec<String> {
    if difference.lines.iter().all(|row| row.place.file.is_empty()) {
        return Vec::new();
    }
    let text = |line: &diff::LineRow| {
        let mut rows = vec![row(line.bytes, &end(&sentences::line(line), width))];
        if !line.source.is_empty() {
            let source = if all {
                line.source.clone()
            } else {
                begin(&line.source, width - 2).trim_end().to_owned()
            };
            rows.push(below(&source));
        }
        rows
    };
    changed(&difference.lines, most, |row| row.bytes, text)
}

/// Two rows each: what they are, and who made them where.
fn tensors(difference: &Difference, width: usize, most: usize) -> Vec<String> {
    let text = |tensor: &diff::TensorRow| {
        let [what, who] = sentences::tensor(tensor);
        let who = format!("{who}{}", sentences::at(&tensor.place));
        let mut rows = vec![row(tensor.bytes, begin(&what, width).trim_end())];
        rows.extend((!who.is_empty()).then(|| below(&end(who.trim(), width - 2))));
        rows
    };
    changed(sentences::tensors(difference), most, |row| row.bytes, text)
}

/// A second row under a name.
fn below(text: &str) -> String {
    format!("{:NUMBERS$}  {text}", "")
}

fn operators(difference: &Difference) -> Vec<String> {
    let text = |named: &diff::Named| vec![row(named.bytes, &sentences::operator(named))];
    changed(&difference.operators, usize::MAX, |row| row.bytes, text)
}

/// Peaks of their own, which do not add up: in one list.
fn phases(difference: &Difference) -> Vec<String> {
    let changed = difference.phases.iter().filter(|row| row.allocated.status() != Status::Same);
    let parts: Vec<String> = changed
        .map(|row| {
            let (before, after) = (size(row.allocated.a), size(row.allocated.b));
            format!("{} {before} → {after}", sentences::category(&row.name))
        })
        .collect();
    if parts.is_empty() { Vec::new() } else { vec![parts.join(", ")] }
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
        row(finding.bytes, &title)
    };
    changed.iter().map(text).collect()
}
