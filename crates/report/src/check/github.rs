//! An annotation at the line, in the words of GitHub's runner.
//!
//! A workflow command is a line `::error file=a.py,line=3::text`. In the text `%`, carriage return and
//! line feed are written as `%25`, `%0D`, `%0A`; in properties also `:` as `%3A` and `,` as `%2C`
//! (actions/toolkit, `packages/core/src/command.ts`).

use super::Check;

/// An error that GitHub shows in the list of a job and, if it has a file, beside its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// From the root of the repository.
    pub file: Option<String>,
    pub line: Option<u64>,
    pub title: String,
    pub message: String,
}

/// The annotation of a script that did not pass. Its file is named as the report names it.
pub fn annotation(check: &Check) -> Option<Annotation> {
    if check.passes() {
        return None;
    }
    let place = check.place();
    Some(Annotation {
        file: place.map(|(file, _)| file.to_owned()),
        line: place.map(|(_, line)| line),
        title: format!("fathom: {} {}", check.name, check.word()),
        message: check.reasons().join("\n"),
    })
}

impl std::fmt::Display for Annotation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "::error ")?;
        if let Some(file) = &self.file {
            write!(formatter, "file={},", property(file))?;
            if let Some(line) = self.line {
                write!(formatter, "line={line},")?;
            }
        }
        write!(formatter, "title={}::{}", property(&self.title), data(&self.message))
    }
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_github_would_misread_is_escaped() {
        let annotation = Annotation {
            file: Some("a,b:c%.py".to_owned()),
            line: Some(3),
            title: "fathom: train, grew".to_owned(),
            message: "100 % more\r\n::set-output name=x::y".to_owned(),
        };
        assert_eq!(
            annotation.to_string(),
            "::error file=a%2Cb%3Ac%25.py,line=3,title=fathom%3A train%2C grew\
             ::100 %25 more%0D%0A::set-output name=x::y"
        );
        let bare = Annotation { file: None, ..annotation };
        assert!(bare.to_string().starts_with("::error title=fathom%3A"), "{bare}");
    }
}
