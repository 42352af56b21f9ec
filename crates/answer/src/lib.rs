//! From the bytes of files to their answers: what `fathom explain`, `fathom diff` and `fathom page` do between
//! reading a file and writing one. No file, screen or process is touched here, so the viewer does the same
//! in a browser.
//!
//! - `opened`: what the bytes of a file are, and which device of it is meant;
//! - `explained`: a recording studied, several side by side, and its part of a page;
//! - `sides`: two runs compared, as text, JSON and page;
//! - `what_if`: a recording on other cards, under other settings, without some of its tensors;
//! - `texts`, `next`: out-of-memory messages and memory tables, and the commands that go on from them.

mod explained;
mod hinted;
mod next;
mod opened;
mod sides;
mod texts;
mod what_if;

pub use explained::{explanation, for_page, in_full, item, page, ranks, story_of};
pub use hinted::Hinted;
pub use opened::{
    LONGEST_TEXT, Opened, choose, choose_all, is_text, json, need_trace, open, recordings,
};
pub use sides::{Part, SIDES, Shown, of_json, of_recording, of_report, page_of_two};
pub use texts::{Said, entries, next, nothing};
pub use what_if::{CONF_HINT, Question, WhatIf};
