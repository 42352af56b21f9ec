//! The document of `fathom report`: why a run needs its memory, what was tried, and what to change.
//!
//! [`Document`] is plain data with a file for each section; whoever measures fills it in, and a section of which nothing
//! is known is left out. [`Document::markdown`] and [`Document::json`] show the same numbers: each size of the text
//! stands as bytes in `fathom.document/1`.

mod anatomy;
mod answer;
mod change;
mod compared;
mod configurations;
mod known;
mod picture;
mod places;
mod scaling;
mod tried;
mod why;

use serde::Serialize;

pub use self::anatomy::{Anatomy, Component};
pub use self::answer::{Answer, Gain, Refused, causes};
pub use self::change::{Change, Sizes};
pub use self::compared::Compared;
pub use self::configurations::{Configuration, Edit, Setting};
pub use self::known::Known;
pub use self::picture::{Curve, svg};
pub use self::places::{Place, Placed};
pub use self::scaling::{Growth, Knob, Point, Scaling};
pub use self::tried::{Remedy, Tried};
pub use self::why::{Cause, Traced, Why};

use crate::markup::code;

/// The first line of every document, by which a later one knows that it may take its place.
pub const MARK: &str = "<!-- Written by `fathom report`. -->";

/// The name of the JSON.
pub const SCHEMA: &str = "fathom.document/1";

#[derive(Clone, Debug, Default, Serialize)]
pub struct Document {
    pub schema: &'static str,
    /// As it was typed.
    pub command: String,
    /// The command of `fathom` that made it.
    pub made_by: String,
    /// Why not all was measured, if something ended it first.
    pub unfinished: Option<String>,
    pub answer: Answer,
    pub anatomy: Option<Anatomy>,
    pub places: Vec<Place>,
    pub why: Option<Why>,
    pub compared: Option<Compared>,
    pub scaling: Option<Scaling>,
    pub tried: Option<Tried>,
    pub configurations: Vec<Configuration>,
    pub change: Option<Change>,
    pub known: Known,
    /// The file of the picture, as the text names it; `None` without one.
    pub picture: Option<String>,
}

impl Document {
    /// The text; `picture` is the file beside it.
    pub fn markdown(&self) -> String {
        let mut text = format!("{MARK}\n\n# GPU memory of {}\n\n", code(&self.command));
        if let Some(why) = &self.unfinished {
            text += &format!("> **Unfinished:** {why}. What was measured until then follows.\n\n");
        }
        let sections = [
            Some(self.answer.markdown()),
            self.anatomy.as_ref().map(|anatomy| anatomy.markdown(self.picture.as_deref())),
            Place::section(&self.places),
            self.why.as_ref().map(Why::markdown),
            self.compared.as_ref().map(Compared::markdown),
            self.scaling.as_ref().and_then(Scaling::markdown),
            self.tried.as_ref().and_then(Tried::markdown),
            Configuration::section(&self.configurations),
            self.change.as_ref().map(Change::markdown),
            Some(self.known.markdown()),
        ];
        let sections: Vec<String> = sections.into_iter().flatten().collect();
        text + sections.join("\n").trim_end() + "\n"
    }

    /// Its first sentence.
    pub fn headline(&self) -> String {
        format!("{}  {}", self.answer.word, self.answer.sentence).trim_end().to_owned()
    }

    /// For programs: fields are only ever added.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// The text without an end of line after its last sentence, with one full stop. A name of a type stays as it is.
fn sentence(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    let first = text.split_whitespace().next().unwrap_or_default();
    if first.contains(|letter: char| !letter.is_alphabetic() && !",:'-".contains(letter)) {
        return format!("{text}.");
    }
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}
