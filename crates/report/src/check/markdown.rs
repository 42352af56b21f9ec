//! A table for a pull request or a job summary, and below it what did not pass.

use super::Check;

/// The whole, with a heading.
pub fn markdown(checks: &[Check]) -> String {
    let mark = if checks.iter().all(Check::passes) { "✅" } else { "❌" };
    let mut text = format!(
        "### {mark} GPU memory\n\n\
         | script | card | needs | limit | baseline | |\n\
         | --- | --- | ---: | ---: | ---: | --- |\n"
    );
    for check in checks {
        let word = match check.passes() {
            true => check.word().to_owned(),
            false => format!("**{}**", check.word()),
        };
        let cells = [
            escape(&check.name),
            escape(&check.card()),
            check.needs(),
            check.limit(),
            check.change(),
            word,
        ];
        text += &format!("| {} |\n", cells.join(" | "));
    }
    for check in checks.iter().filter(|check| !check.passes()) {
        text += &format!("\n**{}** {}\n\n", escape(&check.name), code(&check.command));
        let place = check.place().map(|(file, line)| format!("at {file}:{line}"));
        for reason in check.reasons().into_iter().chain(place) {
            text += &format!("- {}\n", escape(&reason));
        }
    }
    text += "\n<sub>run on a phantom GPU by fathom: allocations are PyTorch's own, no GPU was used</sub>\n";
    text
}

/// Names are text, never marks, links, HTML or mentions.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '\n' | '\r' => escaped.push(' '),
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '@' => escaped += "&#64;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            _ if character.is_control() => {}
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Words that were typed, in a fence longer than any run of backticks in them.
fn code(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if longest == 0 { "" } else { " " };
    format!("{fence}{space}{text}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_marks() {
        assert_eq!(escape("a|b*c_<img>@you\n`x`"), "a\\|b\\*c\\_&lt;img&gt;&#64;you \\`x\\`");
        assert_eq!(
            (code("python a.py"), code("a `b``c")),
            ("`python a.py`".into(), "``` a `b``c ```".into())
        );
    }
}
