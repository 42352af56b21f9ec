//! Chunks: a tag, a length, a checksum and the payload.

use super::error::Error;

/// Tag, length and checksum.
pub(super) const HEADER: usize = 12;

/// A chunk whose checksum is right.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'a> {
    pub(super) tag: &'a [u8; 4],
    /// Where the payload begins in the file.
    pub(super) offset: u64,
    /// What it holds.
    pub(super) payload: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// The first chunk of `bytes`, which begin at `offset` of the file, and what follows it; `None` if they
    /// end before it does, as after a kill.
    pub(super) fn first(
        bytes: &'a [u8],
        offset: u64,
    ) -> Option<Result<(Chunk<'a>, &'a [u8]), Error>> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let (tag, _) = bytes.split_first_chunk::<4>()?;
        let (payload, rest) = rest.split_at_checked(u32_at(header, 4) as usize)?;
        let chunk = Chunk { tag, offset: offset + HEADER as u64, payload };
        if checksum(tag, payload) != u32_at(header, 8) {
            return Some(Err(Error::Damaged { offset, tag: chunk.name() }));
        }
        Some(Ok((chunk, rest)))
    }

    /// The tag for people.
    fn name(&self) -> String {
        self.tag.escape_ascii().to_string()
    }

    /// An error `at` bytes into the payload.
    pub(super) fn wrong(&self, at: usize, why: impl Into<String>) -> Error {
        Error::Wrong { offset: self.offset + at as u64, tag: self.name(), why: why.into() }
    }

    /// The payload as rows of `size` bytes, each with its place in the payload.
    pub(super) fn rows(
        &self,
        size: usize,
    ) -> Result<impl ExactSizeIterator<Item = (usize, &'a [u8])> + use<'a>, Error> {
        let length = self.payload.len();
        if !length.is_multiple_of(size) {
            return Err(self.wrong(0, format!("{length} bytes are no whole rows of {size}")));
        }
        let rows = self.payload.chunks_exact(size).enumerate();
        Ok(rows.map(move |(index, row)| (index * size, row)))
    }
}

/// A chunk appended to a file.
pub(super) fn append(file: &mut Vec<u8>, tag: &[u8; 4], payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("chunks are far below 4 GiB");
    file.extend_from_slice(tag);
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(&checksum(tag, payload).to_le_bytes());
    file.extend_from_slice(payload);
}

/// CRC-32 with zlib's polynomial, as Python's `zlib.crc32`.
fn checksum(tag: &[u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(tag);
    hasher.update(payload);
    hasher.finalize()
}

/// The bytes of a number inside a row; zeros beyond its end, where no row of checked length is read.
#[inline]
fn bytes_at<const N: usize>(row: &[u8], at: usize) -> [u8; N] {
    row.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// A number inside a row; the caller knows that the row is long enough.
#[inline]
pub(super) fn u16_at(row: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes_at(row, at))
}

/// As [`u16_at`].
#[inline]
pub(super) fn u32_at(row: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes_at(row, at))
}

/// As [`u16_at`].
#[inline]
pub(super) fn u64_at(row: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes_at(row, at))
}
