//! Lines of text for people. Names, messages and paths come from strangers: none of them may end a line,
//! move the cursor, or begin a command for the machine that reads a job's log.

use std::borrow::Cow;

use anstyle::Style;

use crate::reader::Reader;
use crate::sections::columns::{fold, pack};

/// Columns of the labels on the left.
pub(crate) const LABEL_WIDTH: usize = 9;

/// An answer, line by line: whatever is put into a line stays in it.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    text: String,
    columns: usize,
}

impl Lines {
    pub(crate) fn new(reader: Reader) -> Lines {
        Lines { text: String::new(), columns: reader.columns }
    }

    /// The first line, and more below it if it is long: a word in a style, and a sentence.
    pub(crate) fn answer(&mut self, style: Style, word: &str, sentence: &str) {
        let first = format!("{word}  {sentence}");
        let mut rows = fold(&visible(&first), self.columns, LABEL_WIDTH).into_iter();
        let first = rows.next().unwrap_or_default();
        match first.strip_prefix(word) {
            Some(rest) => self.styled(style, word, rest),
            None => self.add(&first),
        }
        rows.for_each(|row| self.add(&row));
    }

    /// A first line that is all in one style.
    pub(crate) fn headline(&mut self, style: Style, text: &str) {
        let rows = fold(&visible(text), self.columns, LABEL_WIDTH);
        rows.iter().for_each(|row| self.styled(style, row, ""));
    }

    /// A command under its label: on one line, or on several that a shell takes for one.
    pub(crate) fn command(&mut self, style: Style, label: &str, command: &str) {
        let rows = pack(&visible(command), self.columns - LABEL_WIDTH);
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        for (label, row) in labels.zip(rows) {
            self.styled(style, &format!("{label:LABEL_WIDTH$}"), &row);
        }
    }

    /// A sentence; what is too much for a line goes on below its beginning.
    pub(crate) fn paragraph(&mut self, text: &str) {
        fold(&visible(text), self.columns, 0).iter().for_each(|row| self.add(row));
    }

    /// A whole line, as it is.
    pub(crate) fn add(&mut self, line: &str) {
        self.styled(Style::new(), "", line);
    }

    /// A line that begins with a word in a style.
    pub(crate) fn styled(&mut self, style: Style, word: &str, rest: &str) {
        let (word, rest) = (visible(word), visible(rest.trim_end()));
        let word = if rest.is_empty() { word.trim_end() } else { &word };
        let both = format!("{word}{rest}");
        match harmless(&both) {
            Cow::Borrowed(_) => self.text += &format!("{style}{word}{style:#}{rest}"),
            // What a log would read as a command has no style to lose.
            Cow::Owned(line) => self.text += &line,
        }
        self.text.push('\n');
    }

    /// A line with a word in a style in its middle.
    pub(crate) fn row(&mut self, start: &str, style: Style, word: &str, rest: &str) {
        let (start, word, rest) = (visible(start), visible(word), visible(rest.trim_end()));
        match harmless(&format!("{start}{word}{rest}")) {
            Cow::Borrowed(_) => self.text += &format!("{start}{style}{word}{style:#}{rest}"),
            Cow::Owned(line) => self.text += &line,
        }
        self.text.push('\n');
    }

    /// Rows under one label; those that are too long go on below, as far to the right as their text begins.
    pub(crate) fn section<Row: AsRef<str>>(
        &mut self,
        style: Style,
        label: &str,
        rows: impl IntoIterator<Item = Row>,
    ) {
        let room = self.columns - LABEL_WIDTH;
        let rows = rows.into_iter().flat_map(|row| fold(&visible(row.as_ref()), room, 0));
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        for (label, row) in labels.zip(rows) {
            self.styled(style, &format!("{label:LABEL_WIDTH$}"), &row);
        }
    }

    /// The text, each line with its end.
    pub(crate) fn text(self) -> String {
        self.text
    }
}

/// A text of several lines, as a stranger wrote it: its lines stay, and nothing else acts.
pub fn clean(text: &str) -> String {
    let lines: Vec<String> =
        text.split('\n').map(|line| harmless(&visible(line)).into_owned()).collect();
    lines.join("\n")
}

/// One line: what would act on a terminal is written out, `\n` and `\u{1b}`; colours are left out.
pub fn visible(line: &str) -> Cow<'_, str> {
    if !line.chars().any(acts) {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len() + 8);
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '\t' => text.push(' '),
            '\u{1b}' if colour(rest).is_some() => rest = colour(rest).unwrap_or_default(),
            _ if acts(character) => text.extend(character.escape_default()),
            _ => text.push(character),
        }
    }
    Cow::Owned(text)
}

/// What follows a colour or style, of which the escape character is read: `[1;31m`.
fn colour(text: &str) -> Option<&str> {
    let codes = text.strip_prefix('[')?;
    codes.trim_start_matches(|code: char| code.is_ascii_digit() || code == ';').strip_prefix('m')
}

/// Control characters, ends of lines and paragraphs, and what turns the direction of writing.
fn acts(character: char) -> bool {
    let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns || matches!(character, '\u{2028}' | '\u{2029}')
}

/// Runners of GitHub take a line that begins with `::`, after blanks, for a command; these and others one that
/// has `##[…]` or `##name[…]` anywhere.
fn harmless(line: &str) -> Cow<'_, str> {
    let start = line.trim_start();
    let is_command = start.starts_with("::");
    let marks: Vec<usize> = line.match_indices("##").map(|(at, _)| at + 2).collect();
    let is_mark = |at: &usize| {
        line[*at..].trim_start_matches(|letter: char| letter.is_ascii_alphabetic()).starts_with('[')
    };
    if !is_command && !marks.iter().any(is_mark) {
        return Cow::Borrowed(line);
    }
    let mut text = line.to_owned();
    marks.into_iter().filter(is_mark).rev().for_each(|at| text.insert(at, '\\'));
    if is_command {
        text.insert(line.len() - start.len(), '\\');
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_line() {
        let mut lines = Lines::new(Reader::plain(100));
        lines.section(Style::new(), "modules", ["a\n::set-output name=x::y", "::warning::b  "]);
        lines.add("\u{1b}[2Jc\r\u{9b}d\u{202e}e\tf");
        lines.add("x ##[error]y ##vso[task]z ## [w]");
        assert_eq!(
            lines.text(),
            "modules  a\\n::set-output name=x::y\n         \\::warning::b\n\
             \\u{1b}[2Jc\\r\\u{9b}d\\u{202e}e f\nx ##\\[error]y ##\\vso[task]z ## [w]\n"
        );
    }

    #[test]
    fn a_text_keeps_its_lines() {
        assert_eq!(clean("a\n  ::error::b\r\n"), "a\n  \\::error::b\\r\n");
        assert_eq!(clean("größer → ✓\n"), "größer → ✓\n");
        assert_eq!(clean("\u{1b}[1;31mred\u{1b}[0m\u{1b}[\u{1b}[2K"), "red\\u{1b}[\\u{1b}[2K");
    }
}
