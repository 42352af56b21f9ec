//! Runs that leave nothing behind: what they write goes to the trial's own folder, and the kernel refuses all else.
//!
//! A command that is run once more was not asked for by name: it must not append to logs again, rotate checkpoints, or
//! upload something twice. A fork of the warm process confines itself (`python/fathom/_doorway/confined`); any other
//! command is started by this program, which confines itself and becomes the command.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use contract::environment as name;
use contract::files::UNCONFINED_FILE;
use serde::{Deserialize, Serialize};

/// The word by which this program starts a command confined.
pub(crate) const WORD: &str = "--confined";

/// Folder of a run that takes what a confined one writes.
pub(crate) const SCRATCH: &str = "scratch";

/// Folders and devices that every program may write to.
const DEVICES: [&str; 9] =
    ["null", "zero", "full", "tty", "ptmx", "pts", "shm", "random", "urandom"];

/// What is compiled is kept there, by the variables that name such folders.
const CACHES: [&str; 4] =
    ["TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", name::CACHE];

/// When the first run ran: what was made in that time is its own, and not there for one that repeats it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) since: SystemTime,
    pub(crate) until: SystemTime,
}

impl Window {
    /// Whether a file was made then.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let born = fs::symlink_metadata(path).and_then(|data| data.created());
        born.is_ok_and(|born| self.since <= born && born <= self.until)
    }
}

/// Who tells the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    /// The process itself, a fork of the warm one.
    Fork,
    /// This program, before it becomes the command.
    Launcher,
}

/// How a run is confined.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Confined {
    pub(crate) by: By,
    pub(crate) unseen: Option<Window>,
}

/// As processes read it.
#[derive(Serialize, Deserialize)]
struct Asked {
    by: By,
    writable: Vec<PathBuf>,
    unseen: Option<(f64, f64)>,
}

impl Confined {
    /// The command that runs so, with its files in `run` and what ranks tell each other in `letters`.
    pub(crate) fn start(&self, words: &[String], run: &Path, letters: Option<&Path>) -> Command {
        let mut command = match self.by {
            By::Fork => Command::new(&words[0]),
            By::Launcher => Command::new("/proc/self/exe"),
        };
        match self.by {
            By::Fork => command.args(&words[1..]),
            // What is made before Python has its mirror goes to the folder as well.
            By::Launcher => command.arg(WORD).args(words).env("TMPDIR", scratch(run).join("tmp")),
        };
        let own = [Some(run), letters].into_iter().flatten().map(Path::to_owned);
        let seconds =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let asked = Asked {
            by: self.by,
            writable: own.chain(shared()).collect(),
            unseen: self.unseen.map(|window| (seconds(window.since), seconds(window.until))),
        };
        // Folders whose names are no text cannot be told: without the variable nothing is started.
        command.env(name::CONFINED, serde_json::to_string(&asked).unwrap_or_default());
        command
    }
}

fn scratch(run: &Path) -> PathBuf {
    run.join(SCRATCH)
}

/// Beside the trial's own folder: devices, and caches of compilers.
fn shared() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let user = ["USER", "LOGNAME"].iter().find_map(std::env::var_os);
    let user = user.unwrap_or_else(|| "root".into()).to_string_lossy().into_owned();
    let named = CACHES.iter().filter_map(std::env::var_os).map(PathBuf::from);
    let usual = [
        home.join(".triton/cache"),
        PathBuf::from(format!("/tmp/torchinductor_{user}")),
        home.join(".nv/ComputeCache"),
    ];
    let own = crate::cache::folder().ok();
    let caches = named.chain(usual).chain(own).filter(|path| is_apart(path, &home));
    let devices = DEVICES.iter().map(|name| Path::new("/dev").join(name));
    caches.chain(devices).collect()
}

/// Whether it is a folder of its own, and not one in which the user's files lie.
fn is_apart(path: &Path, home: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let here = std::env::current_dir().unwrap_or_default();
    path.is_absolute() && ![home, &here].iter().any(|other| real(other).starts_with(real(path)))
}

/// This process confines itself and becomes the command; it comes back only if that fails.
pub(crate) fn become_command(words: impl Iterator<Item = OsString>) -> Result<()> {
    let run = std::env::var_os(name::RUN).map(PathBuf::from).context("no folder is named")?;
    if let Err(error) = confine(&run) {
        fs::write(run.join(UNCONFINED_FILE), format!("{error:#}"))?;
        return Err(error);
    }
    let words: Vec<OsString> = words.collect();
    let (program, rest) = words.split_first().context("no command")?;
    Err(Command::new(program).args(rest).exec().into())
}

fn confine(run: &Path) -> Result<()> {
    let asked = std::env::var(name::CONFINED).context("nothing says how")?;
    let asked: Asked = serde_json::from_str(&asked)?;
    for name in ["files", "tmp"] {
        fs::create_dir_all(scratch(run).join(name))?;
    }
    Ok(confine::restrict(&asked.writable)?)
}
