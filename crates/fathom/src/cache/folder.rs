//! Where stubs, cuDNN's answers and remembered trials are kept: the user's cache, or a folder for temporary
//! files where that cannot be written.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Result;
use contract::environment as name;

use crate::error::Hinted;
use crate::{screen, stubs};

/// As much as the stubs of one torch may take: there must be room for these.
const ROOM: usize = 256 << 10;

/// The folder, found once; that it is not the user's own is said once.
pub(crate) fn folder() -> Result<PathBuf> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| find(wished(), fallback()));
    found.clone().map_err(|why| {
        let hint = format!("set `{}` to a folder that can be written", name::CACHE);
        Hinted::error(format!("there is no folder for the cache: {why}"), hint)
    })
}

/// The folder, if it is the one that was wished for: its substitute is this machine's alone.
pub(crate) fn shared_folder() -> Result<PathBuf> {
    let folder = folder()?;
    match wished() {
        Some(wished) if wished == folder => Ok(folder),
        _ => Err(Hinted::error(
            "shards share answers by the cache, which cannot be written",
            format!("set `{}` to a folder that all jobs can write", name::CACHE),
        )),
    }
}

/// `FATHOM_CACHE`, else the user's cache folder. The loader splits LD_PRELOAD at blanks and colons: a folder
/// with these in its name cannot hold libraries.
fn wished() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = variable(name::CACHE)
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("fathom")))
        .or_else(|| variable("HOME").map(|folder| folder.join(".cache/fathom")));
    folder.filter(|folder| stubs::preloadable(folder))
}

/// Each user has their own: libraries of it are loaded into their processes.
fn fallback() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    crate::installed::temporary().join(format!("fathom-cache-{user}"))
}

fn find(wished: Option<PathBuf>, fallback: PathBuf) -> Result<PathBuf, String> {
    let problem = |folder: &Path, error: io::Error| format!("`{}`: {error}", folder.display());
    let mut first = None;
    if let Some(folder) = wished {
        match try_out(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => first = Some(problem(&folder, error)),
        }
    }
    let own = make_private(&fallback).and_then(|()| try_out(&fallback));
    if let Err(error) = own {
        let both = first.into_iter().chain([problem(&fallback, error)]);
        return Err(both.collect::<Vec<_>>().join("; "));
    }
    if let Some(first) = first {
        let instead = fallback.display();
        screen::say(&format!("fathom: the cache cannot be written, `{instead}` is used ({first})"));
    }
    Ok(fallback)
}

/// Whether it can be written and has room.
fn try_out(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    tempfile::tempfile_in(folder)?.write_all(&vec![1; ROOM])
}

/// A folder that nobody else can write to, now or before.
fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let data = fs::symlink_metadata(folder)?;
    let is_own = data.is_dir() && data.uid() == rustix::process::getuid().as_raw();
    match is_own && data.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(io::Error::other("it is not a folder of this user alone")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_cannot_be_written_has_a_substitute() {
        let place = tempfile::tempdir().unwrap();
        let (wish, other) = (place.path().join("cache"), place.path().join("other"));
        let impossible = PathBuf::from("/dev/null/cache");
        assert_eq!(find(Some(wish.clone()), other.clone()), Ok(wish));
        assert_eq!(find(Some(impossible.clone()), other.clone()), Ok(other.clone()));
        assert_eq!(find(None, other.clone()), Ok(other.clone()));
        let error = find(Some(impossible.clone()), impossible).unwrap_err();
        assert!(error.contains("/dev/null/cache"), "{error}");
        // Whoever could put libraries there could run them as this user.
        fs::set_permissions(&other, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(find(None, other).is_err());
    }
}
