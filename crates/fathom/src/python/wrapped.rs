//! The Python behind a wrapper: `conda run`, `poetry run`, `uv run` and the like start the Python of an environment
//! that is not theirs. The wrapper itself is asked which: it starts `python -c` instead of the script.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::find_program;

/// Programs with a subcommand `run` (or `exec`) that starts a command in an environment, and starts nothing else.
const MANAGERS: [&str; 10] =
    ["conda", "mamba", "micromamba", "poetry", "uv", "pdm", "pipenv", "pixi", "hatch", "rye"];
const STARTS: [&str; 2] = ["run", "exec"];

/// Their flags that take a value as a word of its own.
const WITH_VALUE: [&str; 20] = [
    "-n",
    "--name",
    "-p",
    "--prefix",
    "--cwd",
    "-C",
    "--directory",
    "--project",
    "--package",
    "--python",
    "--extra",
    "--group",
    "--with",
    "--env-file",
    "-e",
    "--environment",
    "--manifest-path",
    "-P",
    "--index-url",
    "--only-group",
];

/// How long one may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// Which interpreter the command's wrapper starts; `None` if it is none of these, or does not say.
pub(super) fn interpreter(command: &[String]) -> Option<PathBuf> {
    let inner = inner(command)?;
    let asked = ["python", "-c", "import sys; print(sys.executable)"].map(str::to_owned);
    let words: Vec<String> = command[..inner].iter().cloned().chain(asked).collect();
    let answer = answer(&words)?;
    let last = answer.lines().last()?.trim();
    Some(PathBuf::from(last)).filter(|path| path.is_absolute() && path.is_file())
}

/// Where the command that a wrapper starts begins.
fn inner(command: &[String]) -> Option<usize> {
    let name = command.first()?.rsplit('/').next()?;
    if !MANAGERS.contains(&name) {
        return None;
    }
    let start = command.iter().position(|word| STARTS.contains(&word.as_str()))?;
    let mut words = command.iter().enumerate().skip(start + 1);
    while let Some((index, word)) = words.next() {
        match word.as_str() {
            "--" => return Some(index + 1).filter(|index| *index < command.len()),
            flag if WITH_VALUE.contains(&flag) => drop(words.next()),
            flag if flag.starts_with('-') => {}
            _ => return Some(index),
        }
    }
    None
}

/// What a command prints, if it ends well and soon.
fn answer(words: &[String]) -> Option<String> {
    let mut child = Command::new(find_program(&words[0]).ok()?)
        .args(&words[1..])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let end = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if end < Instant::now() {
            // It is ours, and nobody waits for it.
            let _ = child.kill().and_then(|()| child.wait());
            return None;
        }
        std::thread::sleep(PAUSE);
    }
    let output = child.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_wrapper_begins_after_its_flags() {
        let at = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            inner(&words).map(|index| words[index..].join(" "))
        };
        for (line, expected) in [
            ("conda run -n env --live-stream python train.py", Some("python train.py")),
            ("/opt/conda/bin/conda run -p /env -- train --lr 1", Some("train --lr 1")),
            ("uv run --with torch train.py", Some("train.py")),
            ("poetry run python -m pkg", Some("python -m pkg")),
            ("pixi run --environment=cuda python a.py", Some("python a.py")),
            ("conda activate env", None),
            ("conda run -n env", None),
            ("python run train.py", None),
        ] {
            assert_eq!(at(line).as_deref(), expected, "{line}");
        }
    }
}
