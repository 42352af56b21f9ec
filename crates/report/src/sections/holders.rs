//! Who holds the bytes of one moment: categories, modules, lines, operators, tensors.

use anatomy::fold::{Folded, fold};
use anatomy::{Dissection, Tensor};

use super::columns::{bar, begin, end, place, share};
use crate::{bytes, json};

/// Kinds of tensors, unless each is wanted.
const LARGEST: usize = 12;
/// Columns of names in front of sizes: the least, and what follows them.
const NAME: usize = 24;
const SIZES: usize = 37;
/// Columns of categories' names, if none is longer.
const NAMES: usize = 14;

/// Columns of who made a tensor, at least.
const WHO: usize = 12;

/// Lines of packages are shown from this part of the whole on.
const LED_TO: u64 = 100;

/// Columns of bars, the most, and what stands in front of them.
const BAR: u64 = 44;
const BEFORE_BAR: usize = 22;

/// One row with a bar each; what is too small for a bar shares the last row.
pub(super) fn categories(at: &Dissection, columns: usize) -> Vec<String> {
    let held: Vec<(&str, u64)> = at.categories.iter().filter(|(_, bytes)| *bytes != 0).collect();
    let largest = held.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let is_small = |bytes: u64| bytes < at.allocated / 200;
    let large = held.iter().filter(|(_, bytes)| !is_small(*bytes));
    let width = large.map(|(name, _)| name.len()).max().unwrap_or(0).max(NAMES);
    let mut rows = Vec::new();
    for (name, bytes) in held.iter().filter(|(_, bytes)| !is_small(*bytes)) {
        let (size, share) = (bytes::text(*bytes), share(*bytes, at.allocated));
        let bar = bar(*bytes, largest, BAR.min(columns.saturating_sub(width + BEFORE_BAR) as u64));
        rows.push(format!("{:<width$}{size:>12} {share:>6}  {bar}", name.replace('_', " ")));
    }
    let small: Vec<String> = held
        .iter()
        .filter(|(_, bytes)| is_small(*bytes))
        .map(|(name, bytes)| format!("{} {}", name.replace('_', " "), bytes::text(*bytes)))
        .collect();
    rows.extend((!small.is_empty()).then(|| small.join(", ")));
    rows
}

/// The tree, folded to `most` rows; `None` shows every module.
pub(super) fn modules(at: &Dissection, columns: usize, most: Option<usize>) -> Vec<String> {
    // All in one row says nothing.
    if at.modules.iter().all(|row| row.path.is_empty()) {
        return Vec::new();
    }
    let Some(most) = most else {
        let depth = |mut index: usize| {
            let mut depth = 0;
            while let Some(parent) = at.modules[index].parent {
                (index, depth) = (parent, depth + 1);
            }
            depth
        };
        let full = at.modules.iter().enumerate().map(|(index, row)| Folded {
            depth: depth(index),
            label: row.path.clone(),
            class: row.class.clone(),
            times: 1,
            bytes: row.total,
            saved: row.saved,
            rest: 0,
        });
        return full.map(|row| module(&row, columns, at.allocated)).collect();
    };
    fold(&at.modules, most).iter().map(|row| module(row, columns, at.allocated)).collect()
}

fn module(row: &Folded, columns: usize, whole: u64) -> String {
    let indent = "  ".repeat(row.depth);
    let width = names(columns).saturating_sub(indent.len());
    // A model is named by its class.
    let class = if row.label == row.class { "" } else { &row.class };
    let label = match (row.rest, row.label.as_str(), row.times) {
        (0, "", _) => "outside of modules".to_owned(),
        (0, label, 1) => format!("{label} {class}"),
        (0, label, times) => format!("{label} ×{times} {class}"),
        (rest, ..) => format!("… {rest} more"),
    };
    let label = format!("{indent}{}", end(label.trim_end(), width));
    let saved = match row.saved {
        0 => String::new(),
        saved => format!("  saved {}", bytes::text(saved)),
    };
    sized(&label, columns, row.bytes, whole) + &saved
}

/// A name, a size and its share.
fn sized(name: &str, columns: usize, size: u64, whole: u64) -> String {
    let name = begin(name, names(columns));
    format!("{name} {:>11} {:>6}", bytes::text(size), share(size, whole))
}

/// Columns of names, with so many for the whole row.
fn names(columns: usize) -> usize {
    columns.saturating_sub(SIZES).max(NAME)
}

/// The user's lines, `most` of them.
pub(super) fn lines(at: &Dissection, columns: usize, most: Option<usize>) -> Vec<String> {
    let known = at.lines.iter().any(|row| !row.file.is_empty());
    let most = most.unwrap_or(usize::MAX);
    let rows = at.lines.iter().filter(|_| known).take(most);
    let row = |row: &anatomy::LineBytes| {
        let name = match row.file.as_str() {
            "" => "no line known".to_owned(),
            file => {
                let place = place(file, row.line);
                let function = if row.function.is_empty() { "" } else { " in " };
                format!("{place}{function}{}", row.function)
            }
        };
        let blocks = if row.count == 1 { "block" } else { "blocks" };
        let name = end(&name, names(columns));
        format!("{}  {} {blocks}", sized(&name, columns, row.bytes, at.allocated), row.count)
    };
    // A line such as `trainer.train()` says little by itself: below it stands what it has led to.
    let each = rows.flat_map(|line| {
        let inner = line
            .library
            .iter()
            .filter(|(_, bytes, _)| at.allocated <= bytes.saturating_mul(LED_TO));
        std::iter::once(row(line)).chain(inner.map(|inner| library(inner, columns, at.allocated)))
    });
    each.take(most).collect()
}

/// The line of a package that the user's line above it has led to.
fn library(
    (line, bytes, count): &(anatomy::LibraryLine, u64, u64),
    columns: usize,
    whole: u64,
) -> String {
    let name = format!("{} in {}", place(&line.file, line.line), line.function);
    let blocks = if *count == 1 { "block" } else { "blocks" };
    let name = format!("  {}", end(&name, names(columns) - 2));
    format!("{}  {count} {blocks}", sized(&name, columns, *bytes, whole))
}

/// What belongs to methods of distributed training.
pub(super) fn areas(at: &Dissection, columns: usize) -> Vec<String> {
    let row = |row: &anatomy::AreaBytes| {
        let parts = match row.parts {
            0 => String::new(),
            parts => format!("{parts} "),
        };
        let blocks = if row.count == 1 { "block" } else { "blocks" };
        let name = format!("{parts}{}", row.name);
        format!("{}  {} {blocks}", sized(&name, columns, row.bytes, at.allocated), row.count)
    };
    at.areas.iter().map(row).collect()
}

pub(super) fn operators(at: &Dissection, columns: usize) -> Vec<String> {
    let rows = at.operators.iter().map(|row| {
        let name = if row.name.is_empty() { "no operator known" } else { &row.name };
        let blocks = if row.count == 1 { "block" } else { "blocks" };
        format!("{}  {} {blocks}", sized(name, columns, row.bytes, at.allocated), row.count)
    });
    rows.collect()
}

/// The largest with those alike in one row; or all that are known, one by one.
pub(super) fn tensors(at: &Dissection, columns: usize, is_full: bool) -> Vec<String> {
    let rows: Vec<[String; 5]> = match is_full {
        true => at.tensors.iter().take(json::LARGEST).map(|one| tensor(one, 1)).collect(),
        false => at.alike.iter().take(LARGEST).map(|row| tensor(&row.first, row.count)).collect(),
    };
    let widest = |column: usize, most: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).min(most)
    };
    let [shape, category, line] = [widest(1, 30), widest(2, 12), widest(4, 26)];
    let size = widest(0, 24);
    // Who made it has what is left.
    let who = columns.saturating_sub(size + shape + category + line + 8);
    let who = widest(3, who.max(WHO));
    let layout = |row: &[String; 5]| {
        let columns = [
            (format!("{:>size$}", row[0]), size),
            (row[1].clone(), shape),
            (row[2].clone(), category),
            (end(&row[3], who), who),
            (end(&row[4], line), line),
        ];
        let columns = columns.iter().filter(|(_, width)| *width != 0);
        let texts: Vec<String> = columns.map(|(text, width)| begin(text, *width)).collect();
        texts.join("  ").trim_end().to_owned()
    };
    rows.iter().map(layout).collect()
}

/// Size, dtype and shape, category, name or maker, line.
fn tensor(tensor: &Tensor, count: u64) -> [String; 5] {
    let size = bytes::text(tensor.bytes);
    let size = if count == 1 { size } else { format!("{count} × {size}") };
    let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
    let shape = match tensor.dtype.as_str() {
        "" => String::new(),
        dtype => format!("{dtype}[{}]", shape.join(", ")),
    };
    let origin = &tensor.origin;
    let maker = if origin.operator.is_empty() { &origin.node } else { &origin.operator };
    let who = match (tensor.name.as_str(), origin.module.as_str()) {
        ("", "") => maker.clone(),
        ("", module) => format!("{maker} in {module}"),
        (name, _) => name.to_owned(),
    };
    let category = tensor.category.name().replace('_', " ");
    let file = origin.file.rsplit('/').next().unwrap_or_default();
    [size, shape, category, who, place(file, origin.line)]
}
