//! Finds the shared objects of installed packages, and what these want from NVIDIA's libraries.
//!
//! Given package folders, gives the SONAMEs the loader will ask for and the functions that must
//! resolve. The one thing to know: a wrong yes hurts more than a wrong no. A stub in place of
//! `libcurl.so.4`, or a refusal in place of another package's `nvte_…` function, breaks programs
//! that worked, so both rules below are narrow.

// What is read here may come from anyone.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::elf::{self, Library};
use super::machine::Machine;
use super::{Error, file_name};

/// What programs open by name at run time, so that no library lists it as needed. cuBLASLt and NVRTC
/// are opened by the real cuDNN, which may be of another CUDA generation than torch.
pub(super) const ALWAYS: [&str; 7] = [
    "libcublasLt.so.12",
    "libcublasLt.so.13",
    // By this name scripts load the driver themselves; on a machine with its headers it is a link.
    "libcuda.so",
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "libnvrtc.so.12",
    "libnvrtc.so.13",
];

/// Where NVIDIA's SONAMEs begin.
const SONAME_STARTS: [&str; 3] = ["libcu", "libnv", "libnccl"];

/// Libraries of others whose names begin in the same way.
const NOT_NVIDIA: [&str; 16] = [
    "libcucim",
    "libcudf",
    "libcue.",
    "libcugraph",
    "libcuml",
    "libcunit",
    "libcuopt",
    "libcups",
    "libcurl",
    "libcurses",
    "libcuspatial",
    "libcuvs",
    "libnvfuser",
    "libnvme",
    "libnvomp",
    "libnvpair",
];

/// Families of NVIDIA's function names; a capital letter follows (`cuMemCreate`, `cudaMalloc`,
/// `cublasLtMatmul`).
const SYMBOL_FAMILIES: [&str; 18] = [
    "cu",
    "cuda",
    "__cuda",
    "cublas",
    "cudnn",
    "cufft",
    "cupti",
    "curand",
    "cusolver",
    "cusparse",
    "cutensor",
    "nccl",
    "pnccl",
    "nvJitLink",
    "nvjpeg",
    "nvml",
    "nvrtc",
    "nvtx",
];

/// Folders that hold no library to import, or only NVIDIA's own, which the phantom replaces.
const SKIPPED_FOLDERS: [&str; 5] = ["__pycache__", "include", "nvidia", "share", "test"];

/// Folders below a package's own in which libraries are looked for; real packages keep them in the
/// first or second.
const MAX_DEPTH: u32 = 2;

/// One shared object of an installed package, with what changes when it is replaced.
#[derive(Debug)]
pub(super) struct LibraryFile {
    pub(super) path: PathBuf,
    /// Which of the given folders it was found in.
    pub(super) package: usize,
    pub(super) size: u64,
    /// Seconds and nanoseconds since 1970.
    pub(super) modified: (i64, i64),
}

impl LibraryFile {
    /// Notes what the file system knows of a file.
    pub(super) fn new(path: PathBuf, package: usize, metadata: &Metadata) -> LibraryFile {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        LibraryFile { path, package, size: metadata.len(), modified }
    }

    /// Looks at a file without opening it; `None` when nothing is there (a dangling link).
    fn stat(path: PathBuf, package: usize) -> Option<LibraryFile> {
        let metadata = fs::metadata(&path).ok().filter(Metadata::is_file)?;
        Some(LibraryFile::new(path, package, &metadata))
    }
}

/// What installed packages want from NVIDIA's libraries.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Names the dynamic loader must find.
    pub(super) sonames: BTreeSet<String>,
    /// Functions that must resolve, none of them given by the packages themselves.
    pub(super) symbols: BTreeSet<String>,
}

/// Lists the shared objects of packages (folders, or single extension modules), sorted by path.
pub(super) fn list(package_dirs: &[PathBuf]) -> Result<Vec<LibraryFile>, Error> {
    let mut files = Vec::new();
    for (package, root) in package_dirs.iter().enumerate() {
        if root.is_file() {
            files.extend(LibraryFile::stat(root.clone(), package));
        } else {
            list_folder(root, package, 0, &mut files)?;
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

fn list_folder(
    folder: &Path,
    package: usize,
    depth: u32,
    files: &mut Vec<LibraryFile>,
) -> Result<(), Error> {
    let failed = |source| Error::Read { path: folder.into(), source };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        // Linked folders are not followed, so that no cycle can trap the walk; linked files are.
        if entry.file_type().map_err(failed)?.is_dir() {
            if depth < MAX_DEPTH && !SKIPPED_FOLDERS.contains(&name) {
                list_folder(&entry.path(), package, depth + 1, files)?;
            }
        } else if name.ends_with(".so") || name.contains(".so.") {
            files.extend(LibraryFile::stat(entry.path(), package));
        }
    }
    Ok(())
}

/// Reads the listed libraries and gathers what they want from NVIDIA's.
///
/// A library that cannot be read is passed over: it may never be loaded, and if it is, the loader
/// says why it cannot.
pub(super) fn scan(files: &[LibraryFile], machine: Machine) -> Wanted {
    let libraries: Vec<(&LibraryFile, Library)> = files
        .iter()
        .filter_map(|file| Some((file, elf::read(&file.path, is_nvidia_symbol).ok()??)))
        // What is for another machine is never loaded here.
        .filter(|(_, library)| library.machine == Some(machine))
        .collect();
    gather(&libraries)
}

/// Decides which needed libraries and wanted symbols are NVIDIA's and missing.
pub(super) fn gather(libraries: &[(&LibraryFile, Library)]) -> Wanted {
    let sonames = wanted_sonames(libraries);
    let symbols = wanted_symbols(libraries, &sonames);
    Wanted { sonames, symbols }
}

fn wanted_sonames(libraries: &[(&LibraryFile, Library)]) -> BTreeSet<String> {
    // A package's own library may be named like NVIDIA's, or be a copy of one that it brings along.
    let own: BTreeSet<(usize, &str)> = libraries
        .iter()
        .flat_map(|(file, library)| names(file, library).map(|name| (file.package, name)))
        .collect();
    let needed = libraries.iter().flat_map(|(file, library)| {
        let is_foreign = |name: &&String| !own.contains(&(file.package, name.as_str()));
        library.needed.iter().filter(|name| is_nvidia_soname(name)).filter(is_foreign).cloned()
    });
    needed.chain(ALWAYS.map(str::to_owned)).collect()
}

fn wanted_symbols(
    libraries: &[(&LibraryFile, Library)],
    sonames: &BTreeSet<String>,
) -> BTreeSet<String> {
    // A library behind a stub of the same name is never loaded, so what it defines does not count.
    let given: BTreeSet<&str> = libraries
        .iter()
        .filter(|(file, library)| !names(file, library).any(|name| sonames.contains(name)))
        .flat_map(|(_, library)| library.defined.iter().map(String::as_str))
        .collect();
    libraries
        .iter()
        .flat_map(|(_, library)| &library.undefined)
        .filter(|symbol| match &symbol.library {
            Some(library) => sonames.contains(library),
            None => is_nvidia_symbol(&symbol.name),
        })
        .filter(|symbol| !given.contains(symbol.name.as_str()))
        .map(|symbol| symbol.name.clone())
        .collect()
}

/// The names by which the loader may know a library.
fn names<'a>(file: &'a LibraryFile, library: &'a Library) -> impl Iterator<Item = &'a str> {
    [file_name(&file.path), library.soname.as_deref()].into_iter().flatten()
}

/// Whether a needed library is NVIDIA's, by name; its stub's path must also pass through
/// `LD_PRELOAD`.
pub(super) fn is_nvidia_soname(name: &str) -> bool {
    SONAME_STARTS.iter().any(|start| name.starts_with(start))
        && !NOT_NVIDIA.iter().any(|start| name.starts_with(start))
        && super::preloadable(Path::new(name))
        && !name.contains('/')
}

/// Whether a symbol without version is a function of NVIDIA's, by name.
pub(super) fn is_nvidia_symbol(name: &str) -> bool {
    let is_of = |family: &&str| {
        let rest = name.strip_prefix(*family);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    };
    name.starts_with("nvshmem") || SYMBOL_FAMILIES.iter().any(is_of)
}
