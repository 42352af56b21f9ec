//! Who reads an answer: with colours or without, and how wide the lines may be.

use anstyle::{AnsiColor, Style};

/// Columns of answers, whatever a terminal says: less breaks every sentence, more is not read with ease.
const NARROWEST: usize = 60;
const WIDEST: usize = 200;

/// Styles and width. Plain text is readable without the styles.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    pub(crate) good: Style,
    pub(crate) bad: Style,
    pub(crate) warn: Style,
    pub(crate) label: Style,
    /// Columns of a line.
    pub(crate) columns: usize,
}

impl Reader {
    /// At a terminal of so many columns.
    pub fn coloured(columns: usize) -> Reader {
        Reader {
            good: AnsiColor::Green.on_default().bold(),
            bad: AnsiColor::Red.on_default().bold(),
            warn: AnsiColor::Yellow.on_default().bold(),
            label: Style::new().dimmed(),
            ..Reader::plain(columns)
        }
    }

    /// Of a file or a pipe.
    pub fn plain(columns: usize) -> Reader {
        let plain = Style::new();
        let columns = columns.clamp(NARROWEST, WIDEST);
        Reader { good: plain, bad: plain, warn: plain, label: plain, columns }
    }
}
