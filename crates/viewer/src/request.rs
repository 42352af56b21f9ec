//! A request: the length of its head (four bytes, the lowest first), the head as JSON, then the files one after
//! the other.

use std::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What is asked, beside the bytes.
#[derive(Debug, Deserialize)]
struct Head {
    /// Two files are compared; else each is explained.
    #[serde(default)]
    compare: bool,
    files: Vec<Named>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
    size: usize,
}

/// Files and what is asked of them.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) compare: bool,
    bytes: Vec<u8>,
    files: Vec<(String, Range<usize>)>,
}

impl Request {
    /// `None` if the two sides do not agree on its form: a mistake of ours, not of a file.
    pub(crate) fn read(bytes: Vec<u8>) -> Option<Request> {
        let (head, rest) = split::<Head>(&bytes)?;
        let mut at = bytes.len() - rest.len();
        let mut files = Vec::new();
        for Named { name, size } in head.files {
            let end = at.checked_add(size)?;
            files.push((name, at..end));
            at = end;
        }
        (at == bytes.len()).then_some(Request { compare: head.compare, bytes, files })
    }

    /// Each file with its name.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files
            .iter()
            .map(|(name, at)| (name.as_str(), self.bytes.get(at.clone()).unwrap_or_default()))
    }
}

/// A head, and what follows it.
pub(crate) fn split<Head: DeserializeOwned>(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (head, rest) = rest.split_at_checked(length)?;
    Some((serde_json::from_slice(head).ok()?, rest))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A request as JavaScript writes it.
    pub(crate) fn written(compare: bool, files: &[(&str, &[u8])]) -> Vec<u8> {
        let named: Vec<_> = files
            .iter()
            .map(|(name, bytes)| serde_json::json!({ "name": name, "size": bytes.len() }))
            .collect();
        let head = serde_json::json!({ "compare": compare, "files": named }).to_string();
        let mut bytes = (head.len() as u32).to_le_bytes().to_vec();
        bytes.extend(head.as_bytes());
        files.iter().for_each(|(_, file)| bytes.extend(*file));
        bytes
    }

    #[test]
    fn what_does_not_add_up_is_no_request() {
        let whole = written(true, &[("a", b"one"), ("b", b"")]);
        let read = Request::read(whole.clone()).unwrap();
        let files: Vec<_> = read.files().collect();
        assert!(read.compare && files == [("a", b"one".as_slice()), ("b", b"")]);
        for end in 0..whole.len() {
            assert!(Request::read(whole[..end].to_vec()).is_none(), "{end}");
        }
        let more = [whole, vec![0]].concat();
        assert!(Request::read(more).is_none());
    }
}
