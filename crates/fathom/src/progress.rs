//! How far the trials are: one line on a terminal, nothing elsewhere.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Characters of the bar.
const WIDTH: usize = 24;

/// A bar on the standard error.
pub(crate) struct Progress {
    shown: bool,
    begun: Instant,
    expected: usize,
    done: usize,
}

impl Progress {
    /// Shown on a terminal, unless the user wants it quiet.
    pub(crate) fn new(quiet: bool) -> Progress {
        let shown = !quiet && std::io::stderr().is_terminal();
        Progress { shown, begun: Instant::now(), expected: 0, done: 0 }
    }

    /// So many trials more.
    pub(crate) fn expect(&mut self, count: usize) {
        self.expected += count;
        self.draw();
    }

    /// One of them is done.
    pub(crate) fn advance(&mut self) {
        self.done += 1;
        self.draw();
    }

    /// Leaves a clean line.
    pub(crate) fn clear(&mut self) {
        if self.shown {
            // A terminal that is gone needs no bar.
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }

    fn draw(&mut self) {
        if !self.shown {
            return;
        }
        let filled = WIDTH * self.done / self.expected.max(1);
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(WIDTH - filled.min(WIDTH)));
        let seconds = self.begun.elapsed().as_secs();
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
