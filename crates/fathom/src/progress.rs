//! What is being done: a line that changes on a terminal, whole lines now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::screen;

/// Characters of the bar.
const WIDTH: usize = 24;

/// A reader waits no longer for the first word.
const SOON: Duration = Duration::from_millis(800);

/// Between two lines about trials where there is no terminal.
const SELDOM: Duration = Duration::from_secs(10);

/// After so long a reader is told that it still goes on, then after twice as long, and so on.
const STILL: Duration = Duration::from_secs(30);

/// Says a sentence, unless what it is about has ended by then, and that it still goes on: until it is dropped.
pub(crate) struct Soon {
    _ends: Sender<()>,
}

impl Soon {
    pub(crate) fn say(text: String) -> Soon {
        let (ends, ended) = channel::<()>();
        thread::spawn(move || {
            let (mut said, mut next, mut waited) = (text, STILL, SOON);
            while ended.recv_timeout(waited) == Err(RecvTimeoutError::Timeout)
                && !screen::is_quiet()
            {
                screen::say(&format!("{}fathom: {said}", line_start()));
                said = format!("still running, {} s so far", next.as_secs());
                waited = if waited == SOON { STILL - SOON } else { next / 2 };
                next *= 2;
            }
        });
        Soon { _ends: ends }
    }
}

/// What takes a line away that is drawn over and over.
fn line_start() -> &'static str {
    if std::io::stderr().is_terminal() { "\r\x1b[2K" } else { "" }
}

/// How far it is, on the standard error.
pub(crate) struct Progress {
    quiet: bool,
    is_terminal: bool,
    /// Whether there is a line to take away.
    drawn: bool,
    begun: Instant,
    /// When a whole line was written last.
    told: Option<Instant>,
    expected: usize,
    done: usize,
    /// What is being done, in words; else trials are counted.
    doing: Option<String>,
}

impl Progress {
    /// Unless the user wants it quiet.
    pub(crate) fn new(quiet: bool) -> Progress {
        Progress {
            quiet: quiet || screen::is_quiet(),
            is_terminal: std::io::stderr().is_terminal(),
            drawn: false,
            begun: Instant::now(),
            told: None,
            expected: 0,
            done: 0,
            doing: None,
        }
    }

    /// So many trials more.
    pub(crate) fn expect(&mut self, count: usize) {
        self.expected += count;
        self.draw();
    }

    /// What is being done from here on.
    pub(crate) fn say(&mut self, doing: String) {
        if self.doing.as_ref() != Some(&doing) {
            self.told = None;
        }
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
        if self.quiet {
            return;
        }
        if !self.is_terminal {
            self.tell();
            return;
        }
        self.drawn = true;
        let seconds = self.begun.elapsed().as_secs();
        let line = match &self.doing {
            Some(doing) => format!("fathom: {doing} … {seconds} s"),
            None => {
                let filled = WIDTH * self.done / self.expected.max(1);
                let rest = "░".repeat(WIDTH - filled.min(WIDTH));
                let bar = format!("{}{rest}", "█".repeat(filled));
                format!("{bar} {} of {} trials, {seconds} s", self.done, self.expected)
            }
        };
        // As above.
        let _ =
            write!(std::io::stderr(), "\r\x1b[2K{line}").and_then(|()| std::io::stderr().flush());
    }

    /// A whole line for each thing that is done; of trials, one now and then.
    fn tell(&mut self) {
        let is_seldom = self.told.is_none_or(|told| SELDOM <= told.elapsed());
        match &self.doing {
            Some(_) if self.told.is_some() => return,
            Some(doing) => screen::say(&format!("fathom: {doing}")),
            None if is_seldom => {
                screen::say(&format!("fathom: {} of {} trials", self.done, self.expected));
            }
            None => return,
        }
        self.told = Some(Instant::now());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
