//! The same line on both sides, although its number has shifted: by function and what stands there,
//! where that was recorded, else by function and order.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::Line;
use crate::align::align;
use crate::difference::{Change, LineRow, Place};
use crate::files;
use crate::side::Side;

/// For each line of B its line in A, as numbers of their lists.
pub(crate) type Matched = Vec<Option<usize>>;

/// Matches lines, file by file. No line is used twice.
pub(crate) fn matched(a: &[Line], b: &[Line]) -> Matched {
    let (in_a, in_b) = (by_file(a), by_file(b));
    let files = files::matched(&in_a.keys().copied().collect(), &in_b.keys().copied().collect());
    let mut matched = vec![None; b.len()];
    for (now, was) in files {
        for (i, j) in in_file(a, b, &in_a[was], &in_b[now]) {
            matched[j] = Some(i);
        }
    }
    matched
}

/// Numbers of the lines of each file, in its order.
fn by_file(lines: &[Line]) -> BTreeMap<&str, Vec<usize>> {
    let mut files: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        files.entry(&line.file).or_default().push(at);
    }
    files.values_mut().for_each(|of| of.sort_by_key(|at| lines[*at].line));
    files
}

/// Pairs of lines of one file, whose numbers are given in the order of the file.
fn in_file(a: &[Line], b: &[Line], before: &[usize], after: &[usize]) -> Vec<(usize, usize)> {
    let weigh = |i: usize, j: usize| weight(&a[before[i]], &b[after[j]]);
    let pairs = align(before.len(), after.len(), weigh).unwrap_or_default();
    let mut pairs: Vec<(usize, usize)> =
        pairs.into_iter().map(|(i, j)| (before[i], after[j])).collect();
    // Code that was moved, or whose function was renamed: the same text, if it stands there once.
    pairs.extend(moved(a, b, before, after, &pairs));
    pairs
}

/// How well two lines of one file match: any match counts more than all that makes one better.
fn weight(a: &Line, b: &Line) -> u32 {
    let is_text_known = !a.source.is_empty() && !b.source.is_empty();
    if a.function != b.function || (is_text_known && a.source != b.source) {
        return 0;
    }
    let alike = |is: bool, worth: u32| if is { worth } else { 0 };
    (1 << 10)
        + alike(a.bytes == b.bytes, 4)
        + alike(a.count == b.count, 2)
        + alike(a.line == b.line, 1)
}

fn moved(
    a: &[Line],
    b: &[Line],
    before: &[usize],
    after: &[usize],
    pairs: &[(usize, usize)],
) -> Vec<(usize, usize)> {
    let used_a: BTreeSet<usize> = pairs.iter().map(|pair| pair.0).collect();
    let used_b: BTreeSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    let mut texts: BTreeMap<&str, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    let has_text = |lines: &[Line], at: usize| !lines[at].source.is_empty();
    for at in before.iter().filter(|at| !used_a.contains(at) && has_text(a, **at)) {
        texts.entry(&a[*at].source).or_default().0.push(*at);
    }
    for at in after.iter().filter(|at| !used_b.contains(at) && has_text(b, **at)) {
        texts.entry(&b[*at].source).or_default().1.push(*at);
    }
    let once = texts.into_values().filter_map(|found| match (&found.0[..], &found.1[..]) {
        ([one], [other]) => Some((*one, *other)),
        _ => None,
    });
    once.collect()
}

/// A row for each line of B and each that only A has.
pub(crate) fn rows(a: &Side, b: &Side, matched: &Matched) -> Vec<LineRow> {
    let (a, b) = (&a.lines, &b.lines);
    let mut rows = Vec::new();
    let mut is_used = vec![false; a.len()];
    for (line, was) in b.iter().zip(matched) {
        let was = was.map(|at| {
            is_used[at] = true;
            &a[at]
        });
        rows.push(LineRow {
            place: place(line),
            source: line.source.clone(),
            was: was.map(place).filter(|was| *was != place(line)),
            bytes: Change { a: was.map_or(0, |was| was.bytes), b: line.bytes },
            count: Change { a: was.map_or(0, |was| was.count), b: line.count },
        });
    }
    let gone = a.iter().zip(is_used).filter(|(_, is_used)| !is_used);
    rows.extend(gone.map(|(line, _)| LineRow {
        place: place(line),
        source: line.source.clone(),
        was: None,
        bytes: Change { a: line.bytes, b: 0 },
        count: Change { a: line.count, b: 0 },
    }));
    rows
}

pub(crate) fn place(line: &Line) -> Place {
    Place { file: line.file.clone(), line: line.line, function: line.function.clone() }
}

/// A number for the line of each side's tensors that is the same where the lines are: that of B's list,
/// else one beyond it.
pub(crate) struct Numbers<'a> {
    a: HashMap<(&'a str, u32), usize>,
    b: HashMap<(&'a str, u32), usize>,
}

impl<'a> Numbers<'a> {
    pub(crate) fn new(a: &'a [Line], b: &'a [Line], matched: &Matched) -> Numbers<'a> {
        let mut in_b: Vec<usize> = (0..a.len()).map(|at| b.len() + at).collect();
        for (at, was) in matched.iter().enumerate() {
            if let Some(was) = was {
                in_b[*was] = at;
            }
        }
        let key = |line: &'a Line| (line.file.as_str(), line.line);
        Numbers {
            a: a.iter().map(key).zip(in_b).collect(),
            b: b.iter().map(key).zip(0..).collect(),
        }
    }

    /// The line of a tensor of A, or of B.
    pub(crate) fn of(&self, is_b: bool, file: &str, line: u32) -> usize {
        let side = if is_b { &self.b } else { &self.a };
        side.get(&(file, line)).copied().unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(file: &str, line: u32, function: &str, source: &str, bytes: u64) -> Line {
        let text = |text: &str| text.to_owned();
        Line {
            file: text(file),
            line,
            function: text(function),
            source: text(source),
            bytes,
            count: 1,
            library: Vec::new(),
        }
    }

    #[test]
    fn shifted_lines_are_known_by_their_text() {
        let a = [line("t.py", 9, "f", "x = a()", 5), line("t.py", 10, "f", "y = b()", 6)];
        let b = [
            line("t.py", 9, "f", "new()", 1),
            line("t.py", 10, "f", "x = a()", 5),
            line("t.py", 12, "f", "y = b()", 7),
        ];
        assert_eq!(matched(&a, &b), [None, Some(0), Some(1)]);
    }

    #[test]
    fn without_texts_order_and_size_tell() {
        let a = [line("t.py", 10, "f", "", 4), line("t.py", 12, "f", "", 8)];
        let b = [
            line("t.py", 11, "f", "", 4),
            line("t.py", 12, "f", "", 2),
            line("t.py", 13, "f", "", 8),
        ];
        assert_eq!(matched(&a, &b), [Some(0), None, Some(1)]);
        let other = [line("t.py", 10, "g", "", 4)];
        assert_eq!(matched(&a, &other), [None]);
    }

    #[test]
    fn moved_lines_are_known_if_they_are_the_only_ones() {
        let a = [line("t.py", 1, "f", "x()", 4), line("t.py", 2, "f", "y()", 4)];
        let b = [line("t.py", 1, "f", "y()", 4), line("t.py", 9, "g", "x()", 4)];
        assert_eq!(matched(&a, &b), [Some(1), Some(0)]);
        let twice = [line("t.py", 8, "g", "x()", 4), line("t.py", 9, "g", "x()", 4)];
        assert_eq!(matched(&a, &twice), [None, None]);
    }
}
