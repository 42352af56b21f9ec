//! Bars, shares and texts that fit their column.

/// Eighths of a block, from none to seven.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A bar for a part of a whole, at most `width` columns.
pub(crate) fn bar(part: u64, whole: u64, width: u64) -> String {
    let whole = u128::from(whole.max(1));
    let eighths = (u128::from(part) * u128::from(width) * 8 + whole / 2) / whole;
    let eighths = (eighths as u64).clamp(u64::from(part != 0), width * 8) as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// `41 %`, `<1 %`: a part of a whole.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let half = u128::from(whole / 2);
    match (u128::from(part) * 100 + half) / u128::from(whole.max(1)) {
        0 if part != 0 => "<1 %".to_owned(),
        percent => format!("{percent} %"),
    }
}

/// The beginning of a text, padded to a width.
pub(crate) fn begin(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return format!("{text}{}", " ".repeat(width - length));
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// The end of a text, which of paths and files tells more.
pub(crate) fn end(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(length + 1 - width.max(1)).collect();
    format!("…{kept}")
}

/// Parts in as many rows as they need, each with its separator at the end.
pub(crate) fn wrap(parts: &[String], separator: &str, width: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let end = if index + 1 < parts.len() { separator } else { "" };
        let piece = format!("{part}{end}");
        match rows.last_mut() {
            Some(row) if row.chars().count() + piece.trim_end().chars().count() <= width => {
                row.push_str(&piece);
            }
            _ => rows.push(piece),
        }
    }
    rows.into_iter().map(|row| row.trim_end().to_owned()).collect()
}

/// A sentence in as many rows as it needs; a number stays with its unit.
pub(crate) fn sentence(text: &str, width: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_unit = ["B", "KiB", "MiB", "GiB"].iter().any(|unit| word.starts_with(unit));
        match words.last_mut().filter(|_| is_unit) {
            Some(number) => *number += &format!(" {word}"),
            None => words.push(word.to_owned()),
        }
    }
    wrap(&words, " ", width)
}

/// A line in as many rows as it needs. Each further row begins below the text of the last column, where the line
/// is one of a table, else below its own beginning, or `hang` columns to the right of it.
pub(crate) fn fold(line: &str, width: usize, hang: usize) -> Vec<String> {
    if line.chars().count() <= width {
        return vec![line.to_owned()];
    }
    let indent = line.chars().take_while(|letter| *letter == ' ').count();
    let hang = match hang {
        0 => last_column(line, width / 2).unwrap_or(indent),
        hang => indent + hang,
    };
    let first: String = line.chars().take(hang).collect();
    let rest: String = line.chars().skip(hang).collect();
    let rows = sentence(&rest, width.saturating_sub(hang).max(1));
    let rows = rows.into_iter().enumerate().map(|(index, row)| match index {
        0 => format!("{first}{row}"),
        _ => format!("{:hang$}{}", "", row.trim_start()),
    });
    rows.collect()
}

/// Where the last column begins that two blanks or more set apart, if that is within the first `most` columns.
fn last_column(line: &str, most: usize) -> Option<usize> {
    let letters: Vec<char> = line.chars().take(most).collect();
    (2..letters.len()).rev().find(|&at| letters[at] != ' ' && letters[at - 2..at] == [' ', ' '])
}

/// A command in rows that a shell takes for one line.
pub(crate) fn pack(command: &str, width: usize) -> Vec<String> {
    if command.chars().count() <= width {
        return vec![command.to_owned()];
    }
    let words: Vec<String> = shell_words(command);
    let rows = wrap(&words, " ", width - 2);
    let last = rows.len().saturating_sub(1);
    let rows = rows.into_iter().enumerate();
    rows.map(|(index, row)| if index < last { format!("{row} \\") } else { row }).collect()
}

/// The words of a command; one that is quoted stays whole.
fn shell_words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for part in command.split(' ') {
        match words.last_mut().filter(|word| word.matches('\'').count() % 2 == 1) {
            Some(word) => *word += &format!(" {part}"),
            None => words.push(part.to_owned()),
        }
    }
    words
}

/// `25,557,032`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index != 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A file without its folder.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `train.py:12`, or nothing.
pub(crate) fn place(file: &str, line: u32) -> String {
    if file.is_empty() { String::new() } else { format!("{file}:{line}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_exact_to_an_eighth() {
        assert_eq!(bar(50, 100, 4), "██");
        assert_eq!(bar(1, 32, 4), "▏");
        assert_eq!(
            (bar(1, 1 << 40, 4), bar(0, 9, 4), bar(9, 0, 2)),
            ("▏".into(), "".into(), "██".into())
        );
    }

    #[test]
    fn shares_are_rounded() {
        assert_eq!(
            (share(415, 1000), share(1, 1000), share(0, 5)),
            ("42 %".into(), "<1 %".into(), "0 %".into())
        );
        assert_eq!(share(u64::MAX, u64::MAX), "100 %");
    }

    #[test]
    fn texts_fit_their_column() {
        assert_eq!((begin("abc", 5), begin("abcdef", 4)), ("abc  ".into(), "abc…".into()));
        assert_eq!(
            (end("/a/b/net.py:12", 10), end("net.py", 10)),
            ("…net.py:12".into(), "net.py".into())
        );
        let parts = ["one".to_owned(), "two".to_owned(), "three".to_owned()];
        assert_eq!(wrap(&parts, ", ", 10), ["one, two,", "three"]);
        assert_eq!(sentence("one two 3 MiB, four", 9), ["one two", "3 MiB,", "four"]);
        let row = "13.00 GiB  92 %  maps at 64 × 64 of many layers";
        assert_eq!(
            fold(row, 36, 0),
            ["13.00 GiB  92 %  maps at 64 × 64 of", "                 many layers"]
        );
        assert_eq!(fold("FITS  a card of it", 12, 4), ["FITS  a card", "    of it"]);
        assert_eq!(
            pack("fathom run -- python 'a b' c.py", 20),
            ["fathom run -- \\", "python 'a b' c.py"]
        );
        assert_eq!((count(25557032), count(12)), ("25,557,032".into(), "12".into()));
    }
}
