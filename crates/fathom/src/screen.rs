//! The standard output and the standard error: the only place that writes to them.
//!
//! A reader who has gone (`fathom gpus | head -1`) is no error; a disk that is full is one.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::{Context, Result};
use report::Reader;

/// Columns of a text whose reader is not known.
const COLUMNS: usize = 80;

/// Whether what is being done is told: not at all, as usual, or in detail.
static TOLD: AtomicU8 = AtomicU8::new(USUAL);
const QUIET: u8 = 0;
const USUAL: u8 = 1;
const DETAIL: u8 = 2;

/// The standard output, where it is kept for the answer alone.
static ANSWER: OnceLock<File> = OnceLock::new();

/// Whether an output is the standard output: `--json -`.
pub(crate) fn is_stdout(path: Option<&Path>) -> bool {
    path == Some(Path::new("-"))
}

/// Keeps the standard output for one answer: whatever else is printed from now on, by us or by the script,
/// goes to the standard error.
pub(crate) fn keep_for_answer() -> Result<()> {
    let keep = || -> io::Result<()> {
        let own = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        // A second call would keep the standard error.
        ANSWER.get_or_init(|| File::from(own));
        Ok(())
    };
    if ANSWER.get().is_some() {
        return Ok(());
    }
    keep().context("the standard output cannot be kept for the answer")
}

/// Who reads the standard output: as wide as `COLUMNS` says, else the terminal, else 80 columns.
pub(crate) fn reader() -> Reader {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let seen = || {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col))
    };
    let is_known = |columns: &usize| *columns != 0;
    Reader::coloured(told.filter(is_known).or_else(|| seen().filter(is_known)).unwrap_or(COLUMNS))
}

/// Writes an answer of a program, as it is.
pub(crate) fn answer(text: &str) -> Result<()> {
    match ANSWER.get() {
        Some(mut file) => written(file.write_all(text.as_bytes())),
        None => {
            written(io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()))
        }
    }
}

/// Prints a text that `report` made, with colours where they are wanted.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = anstream::stdout();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// By `--quiet` and `--verbose`.
pub(crate) fn tell(quiet: bool, verbose: bool) {
    let told = if quiet { QUIET } else { USUAL + u8::from(verbose) };
    TOLD.store(told, Ordering::Relaxed);
}

/// Whether nothing but the answer is wanted.
pub(crate) fn is_quiet() -> bool {
    TOLD.load(Ordering::Relaxed) == QUIET
}

/// Says what is being done, for `--verbose`.
pub(crate) fn detail(text: impl FnOnce() -> String) {
    if TOLD.load(Ordering::Relaxed) == DETAIL {
        say(&format!("fathom: {}", text()));
    }
}

/// Says something on the standard error, in colour where that is wanted. It may hold names and messages of
/// strangers, which are made harmless.
pub(crate) fn say(text: &str) {
    say_styled(&report::clean(text));
}

/// The same for a text that is clean.
pub(crate) fn say_styled(text: &str) {
    // Nobody is left to be told.
    let _ = writeln!(anstream::stderr(), "{text}");
}

fn written(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to the standard output"),
    }
}
