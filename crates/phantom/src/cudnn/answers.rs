//! What the real cuDNN said, kept between runs: a text file for each version and card.
//!
//! One line is one answer: `<key> <status> <count> <bytes in hex> <checksum>`. The key digests the
//! whole question, the card included. Several processes may append at once: each line is one write
//! to a file opened for appending, and a line whose checksum does not fit is passed over.

use std::collections::HashMap;
use std::ffi::c_int;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::digest::checksum;
use crate::state::lock;

/// Past this size, about 300,000 answers, the file is not appended to; the next run starts it anew.
const LARGEST_FILE: u64 = 16 << 20;

/// Past this number the answers in memory are forgotten; the file still has them for the next run.
const MOST_ANSWERS: usize = 1 << 20;

/// Longest answer worth a line; cuDNN's long texts are asked for once in a blue moon.
const LONGEST_ANSWER: usize = 4096;

/// What a question got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: c_int,
    /// How many values there are, which may be more than were wanted.
    pub(crate) count: i64,
    /// The values; empty where they are descriptors.
    pub(crate) bytes: Vec<u8>,
}

impl Reply {
    pub(crate) fn failure(status: c_int) -> Reply {
        Reply { status, ..Reply::default() }
    }

    /// The one number that it says.
    pub(crate) fn number(&self) -> Option<u64> {
        let bytes = self.bytes.first_chunk().filter(|_| self.status == 0 && self.count == 1)?;
        u64::try_from(i64::from_le_bytes(*bytes)).ok()
    }

    /// Whether the next run would get the same: not so for failures of the library itself.
    fn is_lasting(&self) -> bool {
        (self.status == 0 || (2000..5000).contains(&self.status))
            && self.bytes.len() <= LONGEST_ANSWER
    }
}

/// The answers for one version and card.
pub(crate) struct Answers {
    known: Mutex<HashMap<u128, Reply>>,
    file: Option<File>,
}

impl Answers {
    /// Reads `<folder>/<name>.txt`; without a folder the answers live as long as the process.
    pub(crate) fn open(folder: Option<&Path>, name: &str) -> Answers {
        let path = folder.map(|folder| folder.join(format!("{name}.txt")));
        let text = path.as_deref().map(read_or_restart).unwrap_or_default();
        let known = String::from_utf8_lossy(&text).lines().filter_map(parse).collect();
        Answers { known: Mutex::new(known), file: path.and_then(open_to_append) }
    }

    pub(crate) fn get(&self, key: u128) -> Option<Reply> {
        lock(&self.known).get(&key).cloned()
    }

    pub(crate) fn put(&self, key: u128, reply: &Reply) {
        if !reply.is_lasting() {
            return;
        }
        let mut known = lock(&self.known);
        if MOST_ANSWERS <= known.len() {
            known.clear();
        }
        known.insert(key, reply.clone());
        drop(known);
        if let Some(mut file) = self.file.as_ref() {
            let has_room = file.metadata().is_ok_and(|metadata| metadata.len() < LARGEST_FILE);
            if has_room {
                // A full disk costs the next run a question, no more.
                let _ = file.write_all(line(key, reply).as_bytes());
            }
        }
    }
}

/// The content of the file; a file that has grown too large is removed.
fn read_or_restart(path: &Path) -> Vec<u8> {
    if fs::metadata(path).is_ok_and(|metadata| LARGEST_FILE <= metadata.len()) {
        // Whoever cannot remove it cannot append to it either, and asks cuDNN again.
        let _ = fs::remove_file(path);
    }
    fs::read(path).unwrap_or_default()
}

fn open_to_append(path: PathBuf) -> Option<File> {
    fs::create_dir_all(path.parent()?).ok()?;
    OpenOptions::new().append(true).create(true).open(path).ok()
}

fn line(key: u128, reply: &Reply) -> String {
    let mut text = format!("{key:032x} {} {} ", reply.status, reply.count);
    if reply.bytes.is_empty() {
        text.push('-');
    }
    for byte in &reply.bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    sealed(&text)
}

/// A line with its checksum.
pub(crate) fn sealed(text: &str) -> String {
    format!("{text} {:08x}\n", checksum(text))
}

/// The text of a line, if its checksum fits.
pub(crate) fn unsealed(line: &str) -> Option<&str> {
    let (text, seal) = line.rsplit_once(' ')?;
    (u32::from_str_radix(seal, 16).ok()? == checksum(text)).then_some(text)
}

fn parse(line: &str) -> Option<(u128, Reply)> {
    let mut words = unsealed(line)?.split(' ');
    let key = u128::from_str_radix(words.next()?, 16).ok()?;
    let status = words.next()?.parse().ok()?;
    let count = words.next()?.parse().ok()?;
    let bytes = match words.next()? {
        "-" => Vec::new(),
        hex => hex
            .as_bytes()
            .chunks(2)
            .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())
            .collect::<Option<Vec<u8>>>()?,
    };
    words.next().is_none().then_some((key, Reply { status, count, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Reply {
        Reply { status: 0, count: 1, bytes: 105_119_760i64.to_le_bytes().to_vec() }
    }

    #[test]
    fn a_line_reads_back() {
        for reply in [example(), Reply::failure(3000), Reply { count: 12, ..Reply::default() }] {
            let text = line(7 << 100, &reply);
            assert_eq!(parse(text.trim_end()), Some((7 << 100, reply)));
        }
        assert!(
            line(1, &example())
                .starts_with("00000000000000000000000000000001 0 1 1000440600000000 ")
        );
    }

    #[test]
    fn a_damaged_line_is_passed_over() {
        let whole = line(1, &example());
        let whole = whole.trim_end();
        assert_eq!(parse(&whole[..whole.len() - 3]), None);
        assert_eq!(parse(&whole.replace("10004406", "10004407")), None);
        assert_eq!(parse(&format!("{whole}{whole}")), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn only_what_lasts_is_kept() {
        let answers = Answers::open(None, "none");
        answers.put(1, &example());
        answers.put(2, &Reply::failure(1008));
        answers.put(3, &Reply::failure(3004));
        assert_eq!(answers.get(1), Some(example()));
        assert_eq!(answers.get(2), None);
        assert_eq!(answers.get(3), Some(Reply::failure(3004)));
    }

    #[test]
    fn a_file_that_grew_too_large_is_started_anew() {
        let folder = std::env::temp_dir().join(format!("fathom-large-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("90800-card.txt");
        fs::write(&path, line(5, &example())).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(LARGEST_FILE).unwrap();
        let answers = Answers::open(Some(&folder), "90800-card");
        assert_eq!(answers.get(5), None);
        answers.put(6, &example());
        assert_eq!(fs::metadata(&path).unwrap().len(), line(6, &example()).len() as u64);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn another_process_reads_what_one_wrote() {
        let folder = std::env::temp_dir().join(format!("fathom-answers-{}", std::process::id()));
        Answers::open(Some(&folder), "90800-card").put(5, &example());
        let again = Answers::open(Some(&folder), "90800-card");
        assert_eq!(again.get(5), Some(example()));
        fs::remove_dir_all(folder).unwrap();
    }
}
