//! JUnit's XML: what GitLab, Jenkins and Azure read.

use std::fmt::Write;

use super::Check;

/// One test case a script: not passing is a failure, a script that gave no answer an error.
pub fn junit(checks: &[Check]) -> String {
    let errors = checks.iter().filter(|check| check.is_error()).count();
    let failures = checks.iter().filter(|check| !check.passes()).count() - errors;
    let seconds: f64 = checks.iter().map(|check| check.run.wall_seconds).sum();
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{seconds:.3}\"",
        checks.len()
    );
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"fathom\" {counts}>\n"
    );
    for check in checks {
        // Writing into a text does not fail.
        let _ = write!(
            text,
            "    <testcase classname=\"fathom\" name=\"{}\" time=\"{:.3}\"",
            escape(&check.name),
            check.run.wall_seconds
        );
        text += &body(check);
    }
    text + "  </testsuite>\n</testsuites>\n"
}

fn body(check: &Check) -> String {
    if check.passes() {
        let headline = escape(&crate::headline(&check.run));
        return format!(">\n      <system-out>{headline}</system-out>\n    </testcase>\n");
    }
    let tag = if check.is_error() { "error" } else { "failure" };
    let place = check.place().map(|(file, line)| format!("at {file}:{line}"));
    let reasons: Vec<String> = check.reasons().into_iter().chain(place).collect();
    format!(
        ">\n      <{tag} type=\"{}\" message=\"{}\">{}</{tag}>\n    </testcase>\n",
        escape(check.word()),
        escape(&reasons[0]),
        escape(&reasons.join("\n"))
    )
}

/// Text and attributes; what XML 1.0 has no place for is left out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' | '\t' | ' '..='\u{7e}' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'.. => {
                escaped.push(character);
            }
            _ => {}
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_is_escaped_and_has_no_control_characters() {
        assert_eq!(
            escape("a<b & \"c\"> \u{1b}[2Jd\u{0}\u{fffe}é🙂"),
            "a&lt;b &amp; &quot;c&quot;&gt; [2Jdé🙂"
        );
    }
}
