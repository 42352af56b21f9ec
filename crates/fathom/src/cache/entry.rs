//! One remembered trial as one file: a line of JSON, then the files of the trial's folder, one after another.

// What is read here may come from anyone.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use contract::files::{File, Flops, Levers, Process};
use serde::{Deserialize, Serialize};

/// A trial whose files are larger than this is run again rather than kept.
const LARGEST: u64 = 64 << 20;

/// How a trial ended that is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct How {
    pub(crate) seconds: f64,
    /// Whether its process failed, as one does that the card has no room for.
    pub(crate) has_failed: bool,
}

/// What the first line says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    /// The list of what it rests on, by its hash.
    pub(super) rests_on: String,
    pub(super) ended: How,
    /// Names and sizes of the files that follow.
    files: Vec<(String, u64)>,
}

/// Names of files that a later reader of the folder needs.
fn is_kept(name: &str) -> bool {
    let kind = name.split('.').next().unwrap_or_default();
    ["phantom", Process::KIND, Levers::KIND, Flops::KIND, "recording"].contains(&kind)
}

/// The entry of a trial's folder; `None` if it is too large.
pub(super) fn pack(folder: &Path, rests_on: String, ended: How) -> io::Result<Option<Vec<u8>>> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut size = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_kept(&name) || !entry.file_type()?.is_file() {
            continue;
        }
        size += entry.metadata()?.len();
        if LARGEST < size {
            return Ok(None);
        }
        files.push((name, fs::read(entry.path())?));
    }
    files.sort();
    let sizes = files.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect();
    let header = Header { rests_on, ended, files: sizes };
    let mut whole = serde_json::to_vec(&header)?;
    whole.push(b'\n');
    files.iter().for_each(|(_, bytes)| whole.extend(bytes));
    Ok(Some(whole))
}

/// Its header, and the rest; `None` if it is damaged.
pub(super) fn open(whole: &[u8]) -> Option<(Header, &[u8])> {
    let end = whole.iter().position(|byte| *byte == b'\n')?;
    let (header, rest) = (whole.get(..end)?, whole.get(end + 1..)?);
    let header: Header = serde_json::from_slice(header).ok()?;
    let sum = header.files.iter().try_fold(0u64, |sum, (_, size)| sum.checked_add(*size))?;
    let is_plain = |(name, _): &(String, u64)| is_kept(name) && !name.contains('/');
    (sum == rest.len() as u64 && header.files.iter().all(is_plain)).then_some((header, rest))
}

/// Writes the files into a folder.
pub(super) fn unpack(header: &Header, mut rest: &[u8], folder: &Path) -> io::Result<()> {
    for (name, size) in &header.files {
        let (bytes, others) = rest.split_at(*size as usize);
        fs::File::create_new(folder.join(name))?.write_all(bytes)?;
        rest = others;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: How = How { seconds: 1.5, has_failed: true };

    #[test]
    fn a_folder_comes_back_as_it_was() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(from.path().join("phantom.7"), b"a\nb").unwrap();
        fs::write(from.path().join("process.7.json"), b"{}").unwrap();
        fs::write(from.path().join("output"), b"not kept").unwrap();
        let whole = pack(from.path(), "list".to_owned(), HOW).unwrap().unwrap();
        let (header, rest) = open(&whole).unwrap();
        assert_eq!((header.rests_on.as_str(), header.ended), ("list", HOW));
        unpack(&header, rest, to.path()).unwrap();
        assert_eq!(fs::read(to.path().join("phantom.7")).unwrap(), b"a\nb");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 2);
    }

    #[test]
    fn damage_is_noticed() {
        let from = tempfile::tempdir().unwrap();
        fs::write(from.path().join("phantom.7"), b"abc").unwrap();
        let whole = pack(from.path(), String::new(), HOW).unwrap().unwrap();
        assert!(open(&whole[..whole.len() - 1]).is_none() && open(b"").is_none());
        let text = String::from_utf8(whole).unwrap();
        assert!(open(text.replace("phantom.7", "../evil.7").as_bytes()).is_none());
    }
}
