//! How an error is shown: what happened, why, and the cure.

use anstyle::{AnsiColor, Style};

pub(crate) use answer::Hinted;

/// `error: …`, the chain of causes, a blank line and `hint: …`.
pub(crate) fn text(error: &anyhow::Error) -> String {
    let (red, plain) = (AnsiColor::Red.on_default().bold(), Style::new().bold());
    let (message, hint) = Hinted::words(error);
    let mut text = format!("{red}error{red:#}: {message}");
    if let Some(hint) = hint {
        text += &format!("\n\n{plain}hint{plain:#}: {hint}");
    }
    text
}

/// The same without colours, for who is no terminal.
pub(crate) fn plain(error: &anyhow::Error) -> String {
    let (message, hint) = Hinted::words(error);
    let hint = hint.map_or(String::new(), |hint| format!("\n\nhint: {hint}"));
    format!("error: {message}{hint}")
}

/// Of an argument that is no text: file names may be, and a report could not hold one.
pub(crate) fn no_text() -> anyhow::Error {
    Hinted::error(
        "an argument is not UTF-8",
        "if it names a file, start Fathom in the folder of that file, or rename it",
    )
}
