//! The class around a line of Python: frames name functions only.

/// Source files, if they are at hand.
pub trait Sources {
    /// The text of a file; `None` if it is not there.
    fn text(&self, file: &str) -> Option<String>;
}

/// None is at hand.
pub struct NoSources;

impl Sources for NoSources {
    fn text(&self, _: &str) -> Option<String> {
        None
    }
}

/// The class whose method `function` the line, counted from 1, is in. `None` if the line is not in such a method: then
/// the file is not the one that ran.
pub(crate) fn class_at(text: &str, line: u32, function: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(line as usize).collect();
    let last = lines.last()?;
    if lines.len() != line as usize {
        return None;
    }
    let begins = |line: &str, word: &str| {
        let rest = line.trim_start().strip_prefix(word)?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest.get(..end).map(str::to_owned)
    };
    let is_method = |line: &str| {
        let line = line.trim_start().trim_start_matches("async ");
        begins(line, "def ").as_deref() == Some(function)
    };
    // A call over several lines is named by its first one, which may be the method's own.
    let at = lines.iter().rposition(|line| is_method(line))?;
    let depth = indent(lines.get(at)?);
    let inside = lines.get(at + 1..)?.iter().filter(|line| !line.trim().is_empty());
    let left = |line: &&&str| {
        indent(line) <= depth && !line.trim_start().starts_with([')', '#', '"', '\'', ']'])
    };
    if depth == 0
        || (indent(last) <= depth && at + 1 != lines.len())
        || inside.clone().any(|l| left(&l))
    {
        return None;
    }
    let above = lines.get(..at)?.iter().rev();
    let mut above = above.filter(|line| !line.trim().is_empty() && indent(line) < depth);
    above.find_map(|line| begins(line, "class "))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
import torch

class Outer(nn.Module):
    def __init__(self):
        pass

    def forward(
        self,
        x,
    ):
        return (
            x + 1
        )

def forward(x):
    return x

class Inner(Outer):
    def helper(self):
        y = 1

        return y
";

    #[test]
    fn the_class_around_a_line_is_found() {
        assert_eq!(class_at(TEXT, 12, "forward").as_deref(), Some("Outer"));
        assert_eq!(class_at(TEXT, 5, "__init__").as_deref(), Some("Outer"));
        assert_eq!(class_at(TEXT, 22, "helper").as_deref(), Some("Inner"));
    }

    #[test]
    fn another_file_gives_nothing() {
        assert_eq!(class_at(TEXT, 16, "forward"), None);
        assert_eq!(class_at(TEXT, 22, "forward"), None);
        assert_eq!(class_at(TEXT, 12, "backward"), None);
        assert_eq!(class_at(TEXT, 999, "forward"), None);
        assert_eq!(class_at("", 0, "forward"), None);
    }
}
