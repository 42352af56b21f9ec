//! A recording and its report as one HTML file, which opens from disk and needs no network.
//!
//! A [`Story`] is one recording made ready for drawing: every allocation as a few small numbers, and the
//! stacked curves at a coarse scale. [`render`] puts stories, their reports and the scripts that draw
//! them into one file. What the page shows of the peak it takes from the report's own JSON; what it
//! shows of other moments it sums up from the story.
//!
//! Time on a page is counted in *ticks*: allocations and frees that have happened. Marks and segment
//! events take no room on the axis.
//!
//! - `clock`: ticks of the recording's times;
//! - `kinds`: what allocations have in common: module, operator, line, category, name;
//! - `groups`: the bands of the stacked curves; `buckets`: those curves at a coarse scale;
//! - `segments`: segments and what is reserved, over time;
//! - `axis`: the same ticks for a recording that is replayed on other cards;
//! - `story`, `pack`: all of it as columns of numbers, packed;
//! - `viewer`: the file that makes pages of other files, in a browser;
//! - `html`, `digest`: the file around it, in which nothing but our own scripts can run.

mod axis;
mod buckets;
mod clock;
mod digest;
mod groups;
mod html;
mod kinds;
mod pack;
mod segments;
mod story;
mod viewer;

pub use axis::Axis;
pub use html::{Bundle, Item, render};
pub use story::Story;
pub use viewer::{is_of_this_build, viewer};
