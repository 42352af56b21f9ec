//! Where the program's own files are: the phantom, and the Python package that is the doorway, with its recorder.
//!
//! ```text
//! the tree        target/release/fathom, target/release/libfathom_{phantom,recorder}.so, python/fathom
//! one folder      fathom, libfathom_{phantom,recorder}.so, python/fathom
//! a wheel         bin/fathom, lib/python3.12/site-packages/fathom with lib/libfathom_{phantom,recorder}.so in it
//! pip --target    bin/fathom, fathom with lib/libfathom_{phantom,recorder}.so in it
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::error::Hinted;

/// Where temporary files go. An empty `TMPDIR` is none, or they would come to lie in the working folder; a relative
/// one is meant from here, also in processes that go elsewhere.
pub(crate) fn temporary() -> PathBuf {
    let folder = std::env::temp_dir();
    let folder = if folder.as_os_str().is_empty() { PathBuf::from("/tmp") } else { folder };
    std::path::absolute(&folder).unwrap_or(folder)
}

/// The library that is preloaded.
pub(crate) fn phantom() -> Result<PathBuf> {
    library("libfathom_phantom.so")
}

/// The part of the Python package that is written in Rust.
pub(crate) fn recorder() -> Result<PathBuf> {
    library("libfathom_recorder.so")
}

/// The analysis as WebAssembly. It is built where Rust can, so it may be missing.
pub(crate) fn viewer() -> Result<PathBuf> {
    library("fathom_viewer.wasm").map_err(|error| {
        let hint = "`make viewer` in the tree builds it, after `rustup target add wasm32-unknown-unknown`; \
            `pip install .` packs it then";
        Hinted::error(format!("the viewer is not part of this installation: {error}"), hint)
    })
}

fn library(name: &str) -> Result<PathBuf> {
    find(|program| {
        let beside = program.parent().map(|folder| folder.join(name));
        let installed = packages(program).into_iter().map(|package| package.join("lib").join(name));
        let tree = program.ancestors().map(|folder| folder.join("target/release").join(name));
        beside.into_iter().chain(installed).chain(tree).collect()
    })
}

/// The package that is loaded into the user's process.
pub(crate) fn doorway() -> Result<PathBuf> {
    find(|program| {
        let beside = program.parent().map(|folder| folder.join("python/fathom"));
        let tree = program.ancestors().map(|folder| folder.join("python/fathom"));
        let candidates = beside.into_iter().chain(packages(program)).chain(tree);
        candidates.map(|folder| folder.join("_doorway/entry.py")).collect()
    })
    .map(|entry| entry.ancestors().nth(2).map(Path::to_owned).unwrap_or_default())
}

fn find(candidates: impl Fn(&Path) -> Vec<PathBuf>) -> Result<PathBuf> {
    let program = std::env::current_exe().context("cannot locate the `fathom` executable")?;
    // Tools such as pipx link to the program from elsewhere.
    let program = program.canonicalize().unwrap_or(program);
    let all = candidates(&program);
    all.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let name = all.first().and_then(|path| path.file_name()).unwrap_or_default();
        Hinted::error(
            format!("`{}` is missing beside `{}`", name.to_string_lossy(), program.display()),
            "`make build` makes it in the tree; `pip install .` installs all that belongs together",
        )
    })
}

/// Packages that pip may have installed together with a program: those of this version first.
fn packages(program: &Path) -> Vec<PathBuf> {
    let Some(prefix) = program.parent().and_then(Path::parent) else { return Vec::new() };
    let libraries = ["lib", "lib64"].iter().flat_map(|name| folders(&prefix.join(name)));
    let pythons = libraries.filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
    });
    let sites =
        pythons.flat_map(|path| ["site-packages", "dist-packages"].map(|name| path.join(name)));
    let mut sites: Vec<PathBuf> = sites.chain([prefix.to_owned()]).collect();
    let receipt = format!("fathom_gpu-{}.dist-info", env!("CARGO_PKG_VERSION"));
    sites.sort_by_key(|site| !site.join(&receipt).is_dir());
    sites.into_iter().map(|site| site.join("fathom")).collect()
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_the_same_installation_comes_first() {
        let prefix = tempfile::tempdir().unwrap();
        let site = |version: &str| prefix.path().join("lib").join(version).join("site-packages");
        for version in ["python3.10", "python3.12"] {
            fs::create_dir_all(site(version).join("fathom")).unwrap();
        }
        let receipt = format!("fathom_gpu-{}.dist-info", env!("CARGO_PKG_VERSION"));
        fs::create_dir_all(site("python3.12").join(receipt)).unwrap();
        let found = packages(&prefix.path().join("bin/fathom"));
        assert_eq!(found[0], site("python3.12").join("fathom"));
        assert!(found.contains(&site("python3.10").join("fathom")));
        assert!(found.contains(&prefix.path().join("fathom")), "pip install --target");
    }
}
