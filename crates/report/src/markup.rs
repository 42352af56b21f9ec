//! Markdown of texts that strangers wrote: nothing of it is read as markup.

use crate::lines::visible;

/// Text of strangers, of which nothing is read as markup but code between single backticks.
pub(crate) fn plain(text: &str) -> String {
    let line = text.replace(['\n', '\r'], " ");
    let text = visible(&line);
    let is_paired = text.matches('`').count().is_multiple_of(2) && !text.contains("``");
    if !is_paired {
        return escaped(&text);
    }
    let parts = text.split('`').enumerate();
    let shown = parts.map(|(at, part)| match at % 2 {
        0 => escaped(part),
        // In code a sign stands for itself; a bar would still end a cell.
        _ => format!("`{}`", part.replace('|', "\\|")),
    });
    shown.collect()
}

fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '`' | '|' | '*' | '_' | '[' | ']' | '<' | '>' | '\\' | '#' | '@' | '!' => {
                safe.push('\\');
                safe.push(letter);
            }
            _ => safe.push(letter),
        }
    }
    safe
}

/// Text of strangers as code: its own backticks would end it, and a bar would end the cell.
pub(crate) fn code(text: &str) -> String {
    let text = text.replace('`', "'").replace(['\n', '\r'], " ").replace('|', "\\|");
    format!("`{}`", visible(&text).trim())
}

/// Several lines of strangers as a block of code in a language; a fence in it ends nothing.
pub(crate) fn block(language: &str, text: &str) -> String {
    let longest = text.lines().map(|line| ticks(line.trim_start())).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}{language}\n{}\n{fence}\n", crate::clean(text.trim_end_matches('\n')))
}

/// Backticks that a line begins with.
fn ticks(line: &str) -> usize {
    line.len() - line.trim_start_matches('`').len()
}

/// A table; columns whose head ends with `:` are numbers. Nothing without rows.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = head.iter().map(|name| name.trim_end_matches(':')).collect();
    let lines = head.iter().map(|name| if name.ends_with(':') { "---:" } else { "---" });
    let mut text =
        format!("| {} |\n| {} |\n", names.join(" | "), lines.collect::<Vec<_>>().join(" | "));
    for row in rows {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(code("a`|b\n\u{1b}[2J"), "`a'\\|b \\u{1b}[2J`");
        assert_eq!(plain("<b>@me|x"), "\\<b\\>\\@me\\|x");
        assert_eq!(plain("`__bool__` of a_b"), "`__bool__` of a\\_b");
        assert_eq!(plain("a` __b__"), "a\\` \\_\\_b\\_\\_", "one that ends nothing");
        assert_eq!(plain("``*a*`` `"), "\\`\\`\\*a\\*\\`\\` \\`");
        assert_eq!(block("python", "```\nx"), "````python\n```\nx\n````\n");
    }

    #[test]
    fn a_table_says_which_columns_are_numbers() {
        let rows = [vec!["a".to_owned(), "1".to_owned()]];
        assert_eq!(
            table(&["name", "size:"], &rows),
            "| name | size |\n| --- | ---: |\n| a | 1 |\n\n"
        );
        assert_eq!(table(&["name"], &[]), "");
    }
}
