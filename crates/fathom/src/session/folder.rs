//! Folders that go with the run: each has an owner, whose lock lasts as long as the owner lives.
//!
//! The lock is the system's: it is gone when the process is, however it ended. So a folder whose lock is free
//! was left behind, and the next start removes it. Its file is put in place locked: a folder without one is
//! just being made, or not ours.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Result;
use contract::files::{FOLDER_SCHEMA as MARK, OWNER_FILE as OWNER};
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use tempfile::TempDir;

use super::signals;
use super::tree::{self, Process};
use crate::error::Hinted;
use crate::installed;

/// All our folders are called so.
const PREFIX: &str = "fathom-";

/// A run leaves at least this much, status pages and what processes say of themselves.
const ROOM: usize = 64 << 10;

/// A folder that is gone with the run.
pub(crate) struct Folder {
    folder: TempDir,
    _owner: File,
}

impl Folder {
    /// Makes one, for a purpose in a word; what others left behind is removed first.
    pub(crate) fn new(purpose: &str) -> Result<Folder> {
        signals::watch();
        let place = installed::temporary();
        sweep(&place);
        let folder =
            tempfile::Builder::new().prefix(&format!("{PREFIX}{purpose}-")).tempdir_in(&place);
        let made = folder.and_then(|folder| {
            let owner = own(folder.path())?;
            try_out(folder.path())?;
            Ok((folder, owner))
        });
        let (folder, owner) = made.map_err(|error| {
            let message = format!("cannot write to `{}`: {error}", place.display());
            Hinted::error(message, "set `TMPDIR` to a folder with room for the files of a run")
        })?;
        signals::add_folder(folder.path());
        Ok(Folder { folder, _owner: owner })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        signals::remove_folder(self.folder.path());
    }
}

/// Whether there is room for what a run leaves; what it leaves is known only if there is.
pub(super) fn try_out(folder: &Path) -> io::Result<()> {
    tempfile::tempfile_in(folder)?.write_all(&[1; ROOM])
}

/// Which start of which machine this is: locks of another one say nothing here.
fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Puts the owner's file in place, locked.
fn own(folder: &Path) -> io::Result<File> {
    let draft = folder.join("owner.new");
    let mut file = File::options().read(true).write(true).create_new(true).open(&draft)?;
    // Where files cannot be locked, `is_left` cannot lock either, and leaves the folder alone.
    let _ = flock(&file, FlockOperation::LockShared);
    writeln!(file, "{MARK}\n{}\n{}", boot(), std::process::id())?;
    fs::rename(&draft, folder.join(OWNER))?;
    Ok(file)
}

/// Another process that needs the folder: it is in use until the last of them is gone.
pub(super) fn share(folder: &Path) -> io::Result<File> {
    let file = File::open(folder.join(OWNER))?;
    flock(&file, FlockOperation::NonBlockingLockShared)?;
    Ok(file)
}

/// Removes the folder if it is ours and its last owner is gone.
pub(super) fn remove_if_left(folder: &Path) {
    if let Some(_lock) = left(folder) {
        end_processes_of(folder);
        // What cannot be removed today may be tomorrow.
        let _ = fs::remove_dir_all(folder);
    }
}

/// Removes what runs left behind that were killed.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_if_left(&entry.path());
        }
    }
}

/// The lock of a folder of this user's and this machine's, if nobody else has it.
fn left(folder: &Path) -> Option<File> {
    let own = rustix::process::geteuid().as_raw();
    let data = fs::symlink_metadata(folder).ok().filter(|data| data.uid() == own)?;
    let file = File::open(folder.join(OWNER)).ok().filter(|_| data.is_dir())?;
    let mut text = String::new();
    (&file).take(1024).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    let is_ours = lines.next() == Some(MARK) && lines.next().is_some_and(|at| at == boot());
    (is_ours && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()).then_some(file)
}

/// Processes of a run whose owner and keeper were both killed: the folder is in their environment.
fn end_processes_of(folder: &Path) {
    let mut variable = format!("{}=", contract::environment::RUN).into_bytes();
    variable.extend(folder.as_os_str().as_encoded_bytes());
    let is_of_run = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|text| {
            let rest = text.strip_prefix(variable.as_slice());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    };
    for process in tree::numbers().filter(|pid| is_of_run(*pid)).filter_map(Process::read) {
        process.send(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn left_behind(place: &Path, name: &str) -> PathBuf {
        let folder = place.join(name);
        fs::create_dir(&folder).unwrap();
        drop(own(&folder).unwrap());
        folder
    }

    #[test]
    fn only_folders_without_a_living_owner_are_swept() {
        let place = tempfile::tempdir().unwrap();
        let stale = left_behind(place.path(), "fathom-run-a");
        fs::write(stale.join("process.1.json"), "{}").unwrap();
        let (alive, kept) = (place.path().join("fathom-run-b"), place.path().join("fathom-run-c"));
        fs::create_dir(&alive).unwrap();
        let owner = own(&alive).unwrap();
        left_behind(place.path(), "fathom-run-c");
        let keeper = share(&kept).unwrap();
        let others = place.path().join("fathom-recording");
        fs::create_dir(&others).unwrap();
        fs::write(others.join(OWNER), "somebody's own\n").unwrap();
        let elsewhere = left_behind(place.path(), "fathom-run-d");
        fs::write(elsewhere.join(OWNER), format!("{MARK}\nanother start\n1\n")).unwrap();
        let linked = tempfile::tempdir().unwrap();
        let target = left_behind(linked.path(), "fathom-run-e");
        std::os::unix::fs::symlink(&target, place.path().join("fathom-run-e")).unwrap();
        let named = left_behind(place.path(), "my-fathom-run");
        sweep(place.path());
        assert!(!stale.exists());
        for path in [&alive, &kept, &others, &elsewhere, &target, &named] {
            assert!(path.exists(), "{}", path.display());
        }
        drop((owner, keeper));
        sweep(place.path());
        assert!(!alive.exists() && !kept.exists() && others.exists());
    }
}
