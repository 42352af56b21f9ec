//! Asks an interpreter about itself, and remembers the answer.
//!
//! Nothing of the user's runs: the interpreter is started with `-I -S`, and works out where a script will find
//! torch without running what lies there (`probe.py`).

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::Python;
use crate::cache::{self, Aspect, Eyes, Seen, hash, mark};
use crate::error::Hinted;
use crate::warm::take_apart;

const PROBE: &str = include_str!("probe.py");

/// Variables that decide where Python looks for modules.
const VARIABLES: [&str; 6] =
    ["HOME", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONSAFEPATH", "PYTHONUSERBASE"];

/// How the interpreter will be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// Letters of its own options.
    options: String,
    /// The folder that it will look in first.
    first: Option<PathBuf>,
}

impl Start {
    /// By the words of a command, if it is one of Python's own.
    pub(crate) fn of(command: &[String]) -> Start {
        let Some(words) = take_apart(command) else { return Start::default() };
        let first = match words.rest[0].as_str() {
            "-m" | "-c" => std::env::current_dir().ok(),
            script => {
                let whole = fs::canonicalize(script).ok();
                whole.and_then(|path| path.parent().map(Path::to_owned))
            }
        };
        Start { options: letters(&words.start[1..]), first }
    }
}

/// `-uE -X dev` as `uE`.
fn letters(options: &[String]) -> String {
    let own = options.iter().filter_map(|word| word.strip_prefix('-'));
    own.flat_map(|word| word.chars().take_while(|letter| !matches!(letter, 'X' | 'W'))).collect()
}

/// What `probe.py` says, and what that rests on.
#[derive(Deserialize)]
struct Probed {
    #[serde(flatten)]
    python: Python,
    /// `None` if there is a name among them that is no text: then nothing is kept.
    rests_on: Option<Vec<PathBuf>>,
}

/// The same as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    python: Python,
    rests_on: Vec<Seen>,
}

impl Python {
    /// Asks an interpreter about itself and the torch that it will find; takes some tens of milliseconds
    /// unless the answer is remembered.
    pub(crate) fn probe(executable: &Path, start: &Start) -> Result<Python> {
        let file = remembered_in(executable, start);
        if let Some(python) = file.as_deref().and_then(remembered) {
            return Ok(python);
        }
        let Probed { python, rests_on } = ask(executable, start)?;
        if let (Some(file), Some(rests_on)) = (file, rests_on) {
            let seen = |path: PathBuf| {
                let mark = mark(Aspect::Stamp, &path);
                Seen(Aspect::Stamp, path, mark)
            };
            let rests_on = rests_on.into_iter().chain([executable.to_owned()]).map(seen).collect();
            let kept = serde_json::to_vec(&Kept { python: python.clone(), rests_on });
            if let (Some(folder), Some(name), Ok(kept)) = (file.parent(), file.file_name(), kept) {
                // Without it the next command asks again.
                let _ = cache::replace(folder, &name.to_string_lossy(), &kept);
            }
        }
        Ok(python)
    }
}

fn ask(executable: &Path, start: &Start) -> Result<Probed> {
    // The folder as it is: its name need not be text.
    let first = start.first.as_deref().unwrap_or(Path::new(""));
    let output = Command::new(executable)
        .args(["-I", "-S", "-c", PROBE, &start.options])
        .arg(first)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            let name = executable.display();
            Hinted::error(
                format!("`{name}` could not be started: {error}"),
                "is it a Python interpreter?",
            )
        })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
    answer.ok_or_else(|| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let why = stderr.lines().last().unwrap_or("it gave no answer").to_owned();
        Hinted::error(
            format!("`{}` could not be asked for its torch: {why}", executable.display()),
            "fathom needs Python 3.10 or newer",
        )
    })
}

/// Where the answer is kept; `None` for a program that is not Python itself: what a script of that name starts
/// may be another one tomorrow.
fn remembered_in(executable: &Path, start: &Start) -> Option<PathBuf> {
    let mut magic = [0; 4];
    fs::File::open(executable).ok()?.read_exact(&mut magic).ok()?;
    if magic != *b"\x7fELF" {
        return None;
    }
    let variables = VARIABLES.map(std::env::var_os);
    let here = std::env::current_dir().ok()?;
    let executable = std::path::absolute(executable).ok()?;
    let key = format!("{PROBE} {executable:?} {start:?} {variables:?} {here:?}");
    Some(cache::folder().ok()?.join("pythons").join(hash(key.as_bytes())))
}

fn remembered(file: &Path) -> Option<Python> {
    let kept: Kept = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    Eyes::default().are_as_before(&kept.rests_on).then_some(kept.python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_python_are_known_by_their_letters() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(letters(&words("-uE -Xdev -s")), "uEs");
        let script = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        let start = Start::of(&words(&format!("python -IB -X dev {script} -s")));
        assert_eq!(start.options, "IB");
        assert_eq!(start.first.as_deref(), Some(Path::new(env!("CARGO_MANIFEST_DIR"))));
        assert_eq!(Start::of(&words("torchrun train.py")), Start::default());
    }
}
