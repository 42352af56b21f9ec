//! Stubs: tiny shared objects that stand in for NVIDIA's libraries, so that the dynamic loader is
//! content with the phantom.
//!
//! Given the phantom and the installed packages, [`prepare`] gives the files to preload after it:
//! one empty stub per SONAME that a package needs, and one library of functions that the packages
//! want and the phantom lacks, each of which refuses by its own name.
//!
//! The refusing functions live in a library of their own, never in the stub of the library they
//! belong to. Torch asks for `cudaMalloc` of version `libcudart.so.13` in the file
//! `libcudart.so.13`; glibc takes an unversioned definition from any other file, but aborts the
//! process when that very file has one (`check_match` in `elf/dl-lookup.c`).

mod elf;
mod links;
mod machine;
mod scan;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) use self::links::link;
pub(crate) use self::machine::Machine;
use self::scan::LibraryFile;
use self::write::{REFUSE, Stub};
use crate::cache::hash;

/// Part of every key: a change of what is written must not meet files of an older form.
const FORMAT: u64 = 2;

/// A draft is written within a moment: an older one was left behind.
const DRAFT: Duration = Duration::from_secs(600);

const MANIFEST: &str = "manifest";
const MANIFEST_END: &str = "end";

/// The library of functions that refuse.
const REFUSED_SONAME: &str = "libfathom_refused.so";

/// SONAMEs of NVIDIA's libraries in CUDA 12 and 13, as the wheels that torch 2.4 to 2.15 depends on
/// carry them.
const KNOWN_SONAMES: &[&str] = &[
    "libcublas.so.12",
    "libcublas.so.13",
    "libcublasLt.so.12",
    "libcublasLt.so.13",
    "libcuda.so.1",
    "libcudart.so.12",
    "libcudart.so.13",
    "libcudnn.so.9",
    "libcufft.so.11",
    "libcufft.so.12",
    "libcufile.so.0",
    "libcupti.so.12",
    "libcupti.so.13",
    "libcurand.so.10",
    "libcusolver.so.11",
    "libcusolver.so.12",
    "libcusparse.so.12",
    "libcusparseLt.so.0",
    "libnccl.so.2",
    "libnvJitLink.so.12",
    "libnvJitLink.so.13",
    "libnvToolsExt.so.1",
    "libnvidia-ml.so.1",
    "libnvjpeg.so.12",
    "libnvjpeg.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so.13",
    "libnvshmem_host.so.3",
];

/// Why stubs could not be prepared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file or folder of an installed package, or the phantom, could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A stub or its manifest could not be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A shared object whose tables contradict each other.
    #[error("`{}` is a damaged shared object", path.display())]
    Damaged {
        /// The shared object.
        path: PathBuf,
        /// What is wrong with it.
        source: object::read::Error,
    },
    /// The phantom is not what this program was built with.
    #[error("`{}` is not the phantom: it has no {lacks}", path.display())]
    NotPhantom {
        /// What was given as the phantom.
        path: PathBuf,
        /// What was looked for in it.
        lacks: &'static str,
    },
    /// Stubs in this folder could not be preloaded: another folder is needed.
    #[error("`{}` contains a space, colon or dollar, which LD_PRELOAD cannot carry", path.display())]
    Unpreloadable { path: PathBuf },
}

/// Returns the stubs to preload after the phantom, written into a folder of `cache_dir` unless they
/// are there already.
///
/// `package_dirs` are the folders of installed packages that link to CUDA (or single extension
/// modules), torch's own among them. Without any library to scan, as when the command's python is
/// not known, the stubs are those of [`needed_without_scan`] and nothing is refused by name.
pub(crate) fn prepare(
    cache_dir: &Path,
    phantom: &Path,
    package_dirs: &[PathBuf],
) -> Result<Vec<PathBuf>, Error> {
    let cache_dir = std::path::absolute(cache_dir)
        .map_err(|source| Error::Read { path: cache_dir.into(), source })?;
    if !preloadable(&cache_dir) {
        return Err(Error::Unpreloadable { path: cache_dir });
    }
    let libraries = scan::list(package_dirs)?;
    let folder = cache_dir.join(key(phantom, &libraries)?);
    if let Some(stubs) = load(&folder) {
        return Ok(stubs);
    }
    store(&folder, &build(phantom, &libraries)?)
}

/// Returns the SONAMEs that any torch built for CUDA 12 or 13 may need, sorted.
pub(crate) fn needed_without_scan() -> &'static [&'static str] {
    KNOWN_SONAMES
}

/// Whether `LD_PRELOAD` can name this path: it splits at spaces and colons, expands `$ORIGIN` and
/// knows no escape.
pub(crate) fn preloadable(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte))
}

/// A name for this installation that changes when a library or the phantom is replaced.
fn key(phantom: &Path, libraries: &[LibraryFile]) -> Result<String, Error> {
    let phantom = match fs::metadata(phantom) {
        Ok(metadata) => LibraryFile::new(phantom.into(), 0, &metadata),
        Err(source) => return Err(Error::Read { path: phantom.into(), source }),
    };
    let mut key = FORMAT.to_le_bytes().to_vec();
    for soname in scan::ALWAYS.iter().chain(needed_without_scan()) {
        key.extend(soname.as_bytes());
    }
    for file in [&phantom].into_iter().chain(libraries) {
        let (seconds, nanoseconds) = file.modified;
        key.extend(file.path.as_os_str().as_bytes());
        key.push(0);
        key.extend(file.size.to_le_bytes());
        key.extend(seconds.to_le_bytes());
        key.extend(nanoseconds.to_le_bytes());
    }
    Ok(hash(&key))
}

/// Returns the name and the bytes of every stub, the refusing library first.
fn build(phantom: &Path, libraries: &[LibraryFile]) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let lacking = |lacks| Error::NotPhantom { path: phantom.into(), lacks };
    let exports = elf::read(phantom, |_| true)?.ok_or(lacking("form of a library"))?;
    let machine = exports.machine.ok_or(lacking("machine that is known"))?;
    let soname = exports.soname.as_deref().ok_or(lacking("SONAME"))?;
    let defined: BTreeSet<&str> = exports.defined.iter().map(String::as_str).collect();
    if !defined.contains(REFUSE) {
        return Err(lacking("function `fathom_refuse`"));
    }

    let mut wanted = scan::scan(libraries, machine);
    if libraries.is_empty() {
        wanted.sonames = needed_without_scan().iter().map(|&name| name.to_owned()).collect();
    }
    let refused: Vec<&str> =
        wanted.symbols.iter().map(String::as_str).filter(|name| !defined.contains(name)).collect();
    let refusing = Stub { machine, soname: REFUSED_SONAME, needed: &[soname], refused: &refused };
    let needed = [soname, REFUSED_SONAME];
    let empty = wanted.sonames.iter().map(|name| Stub {
        machine,
        soname: name,
        needed: &needed,
        refused: &[],
    });
    let stubs = [refusing].into_iter().chain(empty);
    Ok(stubs.map(|stub| (stub.soname.to_owned(), write::encode(stub))).collect())
}

/// Returns the stubs of a complete and undamaged folder.
fn load(folder: &Path) -> Option<Vec<PathBuf>> {
    let manifest = fs::read_to_string(folder.join(MANIFEST)).ok()?;
    let stubs = manifest.strip_suffix(MANIFEST_END)?.lines();
    let intact = |line: &str| {
        let (checksum, name) = line.split_once(' ')?;
        let path = folder.join(name);
        let bytes = fs::read(&path).ok()?;
        (checksum == hash(&bytes)).then_some(path)
    };
    stubs.map(intact).collect()
}

/// Writes stubs and, last, the manifest that makes them count.
fn store(folder: &Path, stubs: &[(String, Vec<u8>)]) -> Result<Vec<PathBuf>, Error> {
    fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.into(), source })?;
    sweep_drafts(folder);
    let mut manifest = String::new();
    let mut paths = Vec::new();
    for (name, bytes) in stubs {
        let path = folder.join(name);
        replace(&path, bytes)?;
        writeln!(manifest, "{} {name}", hash(bytes)).expect("a string takes any text");
        paths.push(path);
    }
    manifest.push_str(MANIFEST_END);
    replace(&folder.join(MANIFEST), manifest.as_bytes())?;
    Ok(paths)
}

/// Puts a whole file in place at once: other launches see the old one or the new one, never a part.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let write = WRITES.fetch_add(1, Ordering::Relaxed);
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}-{write}", process::id()));
    let outcome = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, path));
    outcome.map_err(|source| {
        // The draft is of no use to anyone; the first failure is the one to tell.
        let _ = fs::remove_file(&draft);
        Error::Write { path: path.into(), source }
    })
}

/// Removes drafts of launches that were killed while they wrote them.
fn sweep_drafts(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let end = name.rsplit('.').next().and_then(|end| end.split_once('-'));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_draft = end.is_some_and(|(pid, write)| is_number(pid) && is_number(write));
        let age = entry.metadata().and_then(|data| data.modified()).map(|time| time.elapsed());
        if is_draft && matches!(age, Ok(Ok(age)) if DRAFT <= age) {
            // Whoever cannot remove it cannot write either, and says so.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name().and_then(OsStr::to_str)
}
