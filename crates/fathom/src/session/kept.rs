//! A folder that keeps the files of a run, `--out`. It is the user's: files of an earlier run are replaced,
//! and known by what is in them; of any other with such a name nothing is touched, and nothing runs.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use contract::files::{File as _, Process, Unanswered, Waits};
use contract::status;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::Hinted;

/// The folder of a rank begins so, and holds this file: so it is known to be ours.
const RANK: &str = "rank-";
const RANK_MARK: &str = "fathom-rank";

/// How a report begins.
const REPORT_MARK: &[u8] = b"{\n  \"schema\": \"fathom.report/1\"";

/// How every page of the phantom begins.
const OURS: &[u8] = b"FATHOM";

/// Bytes that are read to know a file.
const START: u64 = 64;

/// The largest number that Linux gives to a process.
const LARGEST: u32 = 1 << 22;

/// Files that are named in an error.
const NAMED: usize = 3;

/// A folder of the user's that a run writes to.
pub(crate) struct Kept {
    path: PathBuf,
    /// Two runs at once would take each other's files for those of an earlier one.
    _lock: File,
}

impl Kept {
    /// Makes room for the files of a run, or says what is in the way.
    pub(crate) fn open(folder: &Path) -> Result<Kept> {
        let shown = folder.display();
        fs::create_dir_all(folder).with_context(|| format!("cannot make `{shown}`"))?;
        let path = folder.canonicalize().with_context(|| format!("cannot read `{shown}`"))?;
        let lock = File::open(&path).with_context(|| format!("cannot read `{shown}`"))?;
        // Some file systems have no locks: then two runs at once are the user's to avoid.
        if flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            let message = format!("another run is writing to `{shown}`");
            return Err(Hinted::error(message, "wait for it, or name another folder for this one"));
        }
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        let entries = fs::read_dir(&path).with_context(|| format!("cannot read `{shown}`"))?;
        for entry in entries.flatten() {
            match is_in_the_way(&entry.path()) {
                None => {}
                Some(true) => ours.push(entry.path()),
                Some(false) => others.push(entry.file_name().to_string_lossy().into_owned()),
            }
        }
        if !others.is_empty() {
            return Err(refusal(folder, others));
        }
        super::folder::try_out(&path).map_err(|error| {
            let message = format!("cannot write to `{shown}`: {error}");
            Hinted::error(message, "name a folder with room for the files of a run")
        })?;
        for path in ours {
            remove(&path).with_context(|| format!("cannot remove `{}`", path.display()))?;
        }
        Ok(Kept { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the files of another run instead.
    pub(crate) fn replace_by(&self, other: &Path) -> Result<()> {
        for entry in fs::read_dir(&self.path)?.flatten() {
            if is_in_the_way(&entry.path()) == Some(true) {
                remove(&entry.path())?;
            }
        }
        for entry in fs::read_dir(other)?.flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| known_by(name).is_some()) {
                fs::copy(entry.path(), self.path.join(&name))?;
            }
        }
        Ok(())
    }
}

fn refusal(folder: &Path, mut names: Vec<String>) -> anyhow::Error {
    names.sort();
    let named: Vec<String> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "`{}` has files of yours where the run would write its own: {}{more}",
        folder.display(),
        named.join(", ")
    );
    let other = folder.join("fathom-run");
    Hinted::error(message, format!("name another folder, such as `--out {}`", other.display()))
}

/// The folder of a rank.
pub(crate) fn rank(folder: &Path, rank: u32) -> PathBuf {
    folder.join(format!("{RANK}{rank}"))
}

/// Makes the folder of a rank, anew if this run made it before.
pub(crate) fn make_rank(folder: &Path, number: u32) -> Result<PathBuf> {
    let path = rank(folder, number);
    let shown = path.display();
    if is_in_the_way(&path) == Some(true) {
        remove(&path).with_context(|| format!("cannot remove `{shown}`"))?;
    }
    fs::create_dir(&path).with_context(|| format!("cannot make `{shown}`"))?;
    fs::write(path.join(RANK_MARK), "fathom.rank/1\n")
        .with_context(|| format!("cannot write to `{shown}`"))?;
    Ok(path)
}

/// `None` if no run writes a file of this name; else whether the one that is there is ours.
fn is_in_the_way(path: &Path) -> Option<bool> {
    let data = fs::symlink_metadata(path).ok()?;
    let name = path.file_name()?.to_str()?;
    if name.strip_prefix(RANK).is_some_and(is_number) {
        return Some(data.is_dir() && is_rank(path));
    }
    let is_ours = known_by(name)?;
    Some(data.is_file() && is_ours(&start(path), data.len()))
}

/// How a file of this name is known to be ours, from its first bytes and its length.
fn known_by(name: &str) -> Option<fn(&[u8], u64) -> bool> {
    let parts: Vec<&str> = name.split('.').collect();
    match parts.as_slice() {
        ["report", "json"] => Some(|start, _| start.starts_with(REPORT_MARK)),
        ["phantom", pid] if is_number(pid) => Some(is_page),
        ["phantom", "cards"] => {
            Some(|start, _| start.starts_with(OURS) || start.iter().all(|byte| *byte == 0))
        }
        [Process::KIND, pid, "json"] | [Process::KIND, pid, "json", "new"] if is_number(pid) => {
            Some(|start, length| length == 0 || start.starts_with(Process::mark().as_bytes()))
        }
        ["recording", pid, device, "fathom"] if is_number(pid) && is_number(device) => {
            Some(|start, length| length == 0 || start.starts_with(recording::file::MAGIC))
        }
        _ => None,
    }
}

/// A page of a process that was killed right after it was made is all zeros.
fn is_page(start: &[u8], length: u64) -> bool {
    let is_whole = length == size_of::<status::Status>() as u64;
    start.starts_with(OURS) || length == 0 || is_whole && start.iter().all(|byte| *byte == 0)
}

/// Whether everything in a folder is what a rank leaves.
fn is_rank(folder: &Path) -> bool {
    let is_left_by_rank = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kind = name.split('.').next().unwrap_or_default();
        let is_note = [Waits::KIND, Unanswered::KIND].contains(&kind);
        name == RANK_MARK || is_note || is_in_the_way(&path) == Some(true)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    folder.join(RANK_MARK).is_file() && entries.map(|entry| entry.path()).all(is_left_by_rank)
}

/// Whether a process, a device or a rank can have this number: `001` and dates are others' names.
fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|number| number <= LARGEST && number.to_string() == text)
}

fn start(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open(path).and_then(|file| file.take(START).read_to_end(&mut bytes));
    file.map(|_| bytes).unwrap_or_default()
}

fn remove(path: &Path) -> std::io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_of_ours_make_room_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let theirs = [
            "letters",
            "phantom.001",
            "phantom.txt",
            "process.20240101.json",
            "process.py",
            "rank-01",
            "recording.1.fathom",
            "recording.wav",
        ];
        theirs.iter().for_each(|name| fs::write(at(name), "mine").unwrap());
        fs::write(at("phantom.12"), status::MAGIC.to_ne_bytes()).unwrap();
        fs::write(at("process.12.json"), "{\"schema\": \"fathom.process/1\", \"pid\": 12}")
            .unwrap();
        fs::write(at("recording.12.0.fathom"), recording::file::MAGIC).unwrap();
        fs::write(at("report.json"), "{\n  \"schema\": \"fathom.report/1\",\n").unwrap();
        let rank = make_rank(folder.path(), 3).unwrap();
        fs::write(rank.join("waits.12.json"), "{}").unwrap();
        drop(Kept::open(folder.path()).unwrap());
        assert_eq!(names(folder.path()), theirs);
    }

    #[test]
    fn files_of_others_with_such_names_are_in_the_way() {
        for name in ["report.json", "phantom.1", "process.7.json", "recording.7.0.fathom", "rank-0"]
        {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(name), "mine").unwrap();
            fs::write(folder.path().join("phantom.12"), status::MAGIC.to_ne_bytes()).unwrap();
            let error = crate::error::text(&Kept::open(folder.path()).err().unwrap());
            assert!(error.contains(name) && error.contains("--out"), "{error}");
            assert_eq!(names(folder.path()).len(), 2, "nothing was touched");
        }
    }

    #[test]
    fn a_rank_with_a_note_of_the_users_stays() {
        let folder = tempfile::tempdir().unwrap();
        let rank = make_rank(folder.path(), 0).unwrap();
        fs::write(rank.join("notes.txt"), "mine").unwrap();
        assert!(Kept::open(folder.path()).is_err() && make_rank(folder.path(), 0).is_err());
        assert!(rank.join("notes.txt").exists());
    }

    #[test]
    fn two_runs_at_once_do_not_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = Kept::open(folder.path()).unwrap();
        let error = Kept::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("another run"), "{error}");
        drop(first);
        assert!(Kept::open(folder.path()).is_ok());
    }
}
