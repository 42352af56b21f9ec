//! Errors with a cure.

use std::fmt;

/// What happened and why, and what to do about it.
#[derive(Debug)]
pub struct Hinted {
    message: String,
    hint: String,
}

impl Hinted {
    /// As an error for `?`.
    pub fn error(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Hinted { message: message.into(), hint: hint.into() })
    }

    /// What happened, with the chain of causes, and the cure if there is one: each is one line, since file
    /// names and what other programs said are in there.
    pub fn words(error: &anyhow::Error) -> (String, Option<String>) {
        let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
        let hint = error.downcast_ref::<Hinted>().map(|hinted| report::clean(&hinted.hint));
        (report::clean(&causes.join(": ")), hint)
    }
}

impl fmt::Display for Hinted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}
