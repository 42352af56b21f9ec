//! Two runs compared: as text, as `fathom.diff/1`, as Markdown for a pull request; and a report's JSON read
//! as one of the two sides.

mod json;
mod markdown;
mod read;
mod sentences;
mod terminal;

pub use json::json;
pub use markdown::markdown;
pub use read::read;
pub use terminal::terminal;
