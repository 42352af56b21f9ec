//! Names for the linker: `-lcudart` looks for `libcudart.so`, and neither NVIDIA's wheels nor the stubs
//! have a file without a version in its name.
//!
//! The links lie in a folder below the stubs, one for each set of installed packages. The linker finds
//! them there by `LIBRARY_PATH`, after every folder that is named with `-L`; the dynamic loader does not
//! look there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process;

use super::file_name;
use crate::cache::hash;

const DRIVER: &str = "libcuda.so.1";

/// Makes a link for every stub that has a version in its name, and gives their folder; of two versions the
/// one of this `cuda` counts. A link leads to the library of an installed package where there is one:
/// what is linked against it names the versions of its functions, as it would elsewhere.
///
/// Whether they could be made matters only to a script that compiles something, so a folder that cannot
/// be written is no error: the linker says what it misses.
pub(crate) fn link(stubs: &[PathBuf], packages: &[PathBuf], cuda: Option<u32>) -> Option<PathBuf> {
    let folder = stubs.first()?.parent()?.join(format!("links-{}", key(packages)));
    let _ = fs::create_dir(&folder);
    let mut chosen: BTreeMap<&str, &PathBuf> = BTreeMap::new();
    for stub in stubs {
        let Some((name, version)) = unversioned(stub) else { continue };
        let is_own = cuda.is_some_and(|cuda| version == cuda.to_string());
        if is_own || !chosen.contains_key(name) {
            chosen.insert(name, stub);
        }
    }
    for (name, stub) in chosen {
        let real = file_name(stub).and_then(|name| installed(packages, name));
        let _ = set(&folder.join(name), &real.unwrap_or_else(|| stub.clone()));
    }
    // Triton looks in one folder for both names of the driver, which it links by the one or the other.
    if let Some(driver) = stubs.iter().find(|stub| file_name(stub) == Some(DRIVER)) {
        let _ = set(&folder.join(DRIVER), driver);
    }
    Some(folder)
}

fn key(packages: &[PathBuf]) -> String {
    let packages: Vec<&[u8]> = packages.iter().map(|path| path.as_os_str().as_bytes()).collect();
    hash(&packages.join(&0))
}

/// `libcudart.so` and `13` of `libcudart.so.13`; `None` if there is no version to leave out.
fn unversioned(path: &Path) -> Option<(&str, &str)> {
    let name = file_name(path)?;
    let end = name.find(".so.")? + ".so".len();
    Some((&name[..end], &name[end + 1..]))
}

/// The library of an installed package: in `nvidia/cu13/lib`, or in `nvidia/cuda_runtime/lib` before that.
fn installed(packages: &[PathBuf], name: &str) -> Option<PathBuf> {
    let folders = packages.iter().flat_map(|nvidia| fs::read_dir(nvidia).into_iter().flatten());
    let mut found: Vec<PathBuf> =
        folders.flatten().map(|folder| folder.path().join("lib").join(name)).collect();
    found.retain(|path| path.is_file());
    found.sort();
    found.into_iter().next()
}

/// Puts the link in place at once, unless it is right already.
fn set(link: &Path, target: &Path) -> io::Result<()> {
    if fs::read_link(link).is_ok_and(|now| now == target) {
        return Ok(());
    }
    let mut draft = OsString::from(link);
    draft.push(format!(".{}", process::id()));
    let _ = fs::remove_file(&draft);
    symlink(target, &draft)?;
    fs::rename(&draft, link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_gets_a_name_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "libcublasLt.so.12",
            "libcublasLt.so.13",
            "libcuda.so.1",
            "libcudart.so.13",
            "libfathom_refused.so",
        ];
        let stubs: Vec<PathBuf> = names.iter().map(|name| folder.path().join(name)).collect();
        stubs.iter().for_each(|stub| fs::write(stub, "").unwrap());
        let target = |links: &Path, name: &str| fs::read_link(links.join(name)).unwrap();
        for (cuda, expected) in [(Some(13), 1), (Some(12), 0), (None, 0)] {
            let links = link(&stubs, &[], cuda).unwrap();
            assert_eq!(target(&links, "libcublasLt.so"), stubs[expected], "{cuda:?}");
            assert_eq!(target(&links, "libcuda.so"), stubs[2]);
            assert_eq!(target(&links, DRIVER), stubs[2], "Triton links it by either name");
            assert_eq!(fs::read_dir(&links).unwrap().count(), 4);
        }
    }

    #[test]
    fn installed_packages_are_linked_to_while_they_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let stub = folder.path().join("libcudart.so.13");
        fs::write(&stub, "").unwrap();
        let nvidia = [folder.path().join("nvidia")];
        let real = nvidia[0].join("cu13/lib/libcudart.so.13");
        fs::create_dir_all(real.parent().unwrap()).unwrap();
        fs::write(&real, "").unwrap();
        let linked = |packages: &[PathBuf]| {
            let links = link(std::slice::from_ref(&stub), packages, Some(13)).unwrap();
            fs::read_link(links.join("libcudart.so")).unwrap()
        };
        assert_eq!(linked(&nvidia), real);
        // Another environment with the same torch does not undo it.
        assert_eq!((linked(&[]), linked(&nvidia)), (stub.clone(), real.clone()));
        fs::remove_file(&real).unwrap();
        assert_eq!(linked(&nvidia), stub);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        assert!(link(&[PathBuf::from("/proc/self/no/libcuda.so.1")], &[], None).is_some());
        assert_eq!(link(&[], &[], None), None);
    }
}
