//! How an error is shown: what happened, why, and the cure.

use std::fmt;

use anstyle::{AnsiColor, Style};

/// An error with a cure.
#[derive(Debug)]
pub(crate) struct Hinted {
    message: String,
    hint: String,
}

impl Hinted {
    /// As an error for `?`.
    pub(crate) fn error(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Hinted { message: message.into(), hint: hint.into() })
    }
}

impl fmt::Display for Hinted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}

/// `error: …`, the chain of causes, a blank line and `hint: …`.
pub(crate) fn text(error: &anyhow::Error) -> String {
    let (red, plain) = (AnsiColor::Red.on_default().bold(), Style::new().bold());
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    // File names and what other programs said are in there.
    let mut text = format!("{red}error{red:#}: {}", report::clean(&causes.join(": ")));
    if let Some(hinted) = error.downcast_ref::<Hinted>() {
        text += &format!("\n\n{plain}hint{plain:#}: {}", report::clean(&hinted.hint));
    }
    text
}

/// The same without colours, for who is no terminal.
pub(crate) fn plain(error: &anyhow::Error) -> String {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    let hint =
        error.downcast_ref::<Hinted>().map_or(String::new(), |it| format!("\n\nhint: {}", it.hint));
    format!("error: {}{hint}", causes.join(": "))
}

/// Of an argument that is no text: file names may be, and a report could not hold one.
pub(crate) fn no_text() -> anyhow::Error {
    Hinted::error(
        "an argument is not UTF-8",
        "if it names a file, start Fathom in the folder of that file, or rename it",
    )
}
