//! Settings with which the run fits each card.

use serde::Serialize;

use crate::bytes;
use crate::markup::{block, code, plain};

/// A card, and what fits it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Configuration {
    pub card: String,
    pub memory_bytes: u64,
    /// `fits`, `fits_if`, `does_not_fit`, `script_failed` or `not_run`.
    pub as_it_is: &'static str,
    /// What the run takes there, context included; without a limit if it does not fit.
    pub device_bytes: u64,
    /// Changes with which it fits, each by itself.
    pub settings: Vec<Setting>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Setting {
    /// `batch_size 32`, or a plan's name.
    pub what: String,
    /// How far it changes results, if that is known.
    pub results: String,
    pub allocated_bytes: u64,
    pub device_bytes: u64,
    /// `None` for what is no text of a file.
    pub edit: Option<Edit>,
}

/// A change of a text.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Edit {
    /// `diff`; `text` for what is to be written by hand.
    pub language: &'static str,
    pub text: String,
    /// Where a diff is applied, if not in the working folder.
    pub folder: String,
    /// The command to type with it, if that is another one.
    pub command: String,
}

impl Configuration {
    /// `None` without cards.
    pub(super) fn section(all: &[Configuration]) -> Option<String> {
        // One GPU that it fits is the answer already.
        let says_more = 1 < all.len()
            || all.iter().any(|one| !one.settings.is_empty() || one.as_it_is != "fits");
        says_more.then(|| {
            let each: Vec<String> = all.iter().map(Configuration::markdown).collect();
            format!(
                "## Configurations\n\nWhat fits each GPU; every row was run on it.\n\n{}",
                each.join("\n")
            )
        })
    }

    fn markdown(&self) -> String {
        let mut text = format!("### {}\n\n", plain(&self.card));
        let (takes, memory) = (bytes::text(self.device_bytes), bytes::text(self.memory_bytes));
        text += &match self.as_it_is {
            "fits" => format!("It fits as it is: it takes {takes} of {memory}.\n\n"),
            "fits_if" => format!(
                "It takes {takes} of {memory} with what was assumed of values that are not known.\n\n"
            ),
            "does_not_fit" => format!(
                "It does not fit as it is: it takes {takes} without a limit, of {memory}.\n\n"
            ),
            other => format!(
                "It was not decided whether it fits as it is ({}).\n\n",
                other.replace('_', " ")
            ),
        };
        for setting in &self.settings {
            text += &setting.markdown();
        }
        if self.settings.is_empty() && self.as_it_is == "does_not_fit" {
            text += "Nothing that was tried fits it.\n";
        }
        text
    }
}

impl Setting {
    fn markdown(&self) -> String {
        let results =
            if self.results.is_empty() { String::new() } else { format!(" ({})", self.results) };
        let sizes = format!(
            "{} allocated, {} with the context",
            bytes::text(self.allocated_bytes),
            bytes::text(self.device_bytes)
        );
        let mut text = format!("**{}**{results}: {sizes}.\n\n", plain(&self.what));
        if let Some(edit) = &self.edit {
            text += &edit.markdown();
        }
        text
    }
}

impl Edit {
    pub(super) fn markdown(&self) -> String {
        let mut text = match self.folder.as_str() {
            "" => String::new(),
            folder => format!("In {}:\n\n", code(folder)),
        };
        // A diff may end with a line of a blank: only ends of lines go.
        let lines = self.text.trim_end_matches('\n');
        if !lines.is_empty() {
            text += &(block(self.language, lines) + "\n");
        }
        if !self.command.is_empty() {
            text += &format!("The command is then:\n\n{}\n", block("bash", &self.command));
        }
        text
    }
}
