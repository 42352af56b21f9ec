//! How far the trials are: one line on a terminal, nothing elsewhere.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Characters of the bar.
const WIDTH: usize = 24;

/// A bar on the standard error.
pub(crate) struct Progress {
    shown: bool,
    /// Whether there is a line to take away.
    drawn: bool,
    begun: Instant,
    expected: usize,
    done: usize,
    /// What is being done, in words; else trials are counted.
    doing: Option<String>,
}

impl Progress {
    /// Shown on a terminal, unless the user wants it quiet.
    pub(crate) fn new(quiet: bool) -> Progress {
        let shown = !quiet && std::io::stderr().is_terminal();
        Progress { shown, drawn: false, begun: Instant::now(), expected: 0, done: 0, doing: None }
    }

    /// So many trials more.
    pub(crate) fn expect(&mut self, count: usize) {
        self.expected += count;
        self.draw();
    }

    /// What is being done from here on.
    pub(crate) fn say(&mut self, doing: String) {
        self.doing = Some(doing);
        self.draw();
    }

    /// One of them is done.
    pub(crate) fn advance(&mut self) {
        self.done += 1;
        self.draw();
    }

    /// Leaves a clean line.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            // A terminal that is gone needs no bar.
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }

    fn draw(&mut self) {
        if !self.shown {
            return;
        }
        self.drawn = true;
        let seconds = self.begun.elapsed().as_secs();
        if let Some(doing) = &self.doing {
            let line = format!("fathom: {doing} … {seconds} s");
            // As above.
            let _ = write!(std::io::stderr(), "\r\x1b[2K{line}")
                .and_then(|()| std::io::stderr().flush());
            return;
        }
        let filled = WIDTH * self.done / self.expected.max(1);
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(WIDTH - filled.min(WIDTH)));
        let line = format!("{bar} {} of {} trials, {seconds} s", self.done, self.expected);
        // As above.
        let _ =
            write!(std::io::stderr(), "\r\x1b[2K{line}").and_then(|()| std::io::stderr().flush());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
