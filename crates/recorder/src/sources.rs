//! Who a file belongs to, and what stands on its lines.

use std::collections::HashMap;

use notes::paths::Paths;
use pyo3::prelude::*;

use crate::texts::Text;

/// Of a line of source this much is kept.
const LONGEST_LINE: usize = 200;

pub(crate) struct Sources {
    paths: Paths,
    /// Lines of files, as far as they are the user's.
    files: HashMap<String, Vec<String>>,
}

/// Tells files apart by their paths.
#[pyclass(frozen, module = "fathom_recorder")]
pub(crate) struct FileOwner(Paths);

#[pymethods]
impl FileOwner {
    #[new]
    fn new(own: Text, standard: Text) -> FileOwner {
        FileOwner(Paths { own: own.0, standard: standard.0 })
    }

    #[pyo3(name = "is_ours")]
    fn is_ours_of(&self, path: Text) -> bool {
        self.0.is_ours(&path)
    }

    #[pyo3(name = "is_library")]
    fn is_library_of(&self, path: Text) -> bool {
        self.0.is_library(&path)
    }
}

impl Sources {
    pub(crate) fn new(owner: &FileOwner) -> Sources {
        Sources { paths: owner.0.clone(), files: HashMap::new() }
    }

    pub(crate) fn is_ours(&self, path: &str) -> bool {
        self.paths.is_ours(path)
    }

    pub(crate) fn is_users(&self, path: &str) -> bool {
        !self.paths.is_library(path)
    }

    /// What stands on a line of the user's own: two commits are compared by it, when the file is long gone.
    pub(crate) fn line(&mut self, path: &str, line: u32) -> String {
        if !self.files.contains_key(path) {
            let text = if self.is_users(path) {
                std::fs::read(path).unwrap_or_default()
            } else {
                Vec::new()
            };
            let lines = String::from_utf8_lossy(&text).lines().map(str::to_owned).collect();
            self.files.insert(path.to_owned(), lines);
        }
        let found = (line as usize).checked_sub(1).and_then(|index| self.files[path].get(index));
        found.map_or(String::new(), |text| text.trim().chars().take(LONGEST_LINE).collect())
    }
}
