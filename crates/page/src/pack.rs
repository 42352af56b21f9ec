//! Columns of numbers, packed: seven bits to a byte, differences where they are smaller, then deflate.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;

/// How a column's numbers were turned into small ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// As they are.
    Plain,
    /// Differences from the number before, signs in the lowest bit.
    Delta,
}

/// Where a column is and how to read it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Column {
    name: String,
    form: Form,
    count: usize,
    bytes: usize,
}

/// Columns on their way into a page.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) list: Vec<Column>,
    data: Vec<u8>,
}

impl Columns {
    /// Numbers that are small, or repeat.
    pub(crate) fn plain(&mut self, name: &str, numbers: impl IntoIterator<Item = u64>) {
        self.push(name, Form::Plain, numbers.into_iter());
    }

    /// Numbers that are near the one before.
    pub(crate) fn delta(&mut self, name: &str, numbers: impl IntoIterator<Item = u64>) {
        let mut before = 0u64;
        let differences = numbers.into_iter().map(|number| {
            let difference = number.wrapping_sub(before) as i64;
            before = number;
            ((difference << 1) ^ (difference >> 63)) as u64
        });
        self.push(name, Form::Delta, differences);
    }

    fn push(&mut self, name: &str, form: Form, numbers: impl Iterator<Item = u64>) {
        let start = self.data.len();
        let mut count = 0;
        for number in numbers {
            append(&mut self.data, number);
            count += 1;
        }
        let bytes = self.data.len() - start;
        self.list.push(Column { name: name.to_owned(), form, count, bytes });
    }

    /// The header's length in four bytes, the header, the columns one after the other: deflated.
    pub(crate) fn deflate(&self, header: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
        let parts = [&(header.len() as u32).to_le_bytes()[..], header, &self.data];
        for part in parts {
            encoder.write_all(part).expect("a vector takes all that is written");
        }
        encoder.finish().expect("a vector takes all that is written")
    }
}

/// Seven bits to a byte, the lowest first; the highest bit says that more follow.
fn append(data: &mut Vec<u8>, mut number: u64) {
    while 0x80 <= number {
        data.push(number as u8 | 0x80);
        number >>= 7;
    }
    data.push(number as u8);
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        let mut columns = Columns::default();
        columns.plain("a", [0, 127, 128, u64::MAX]);
        assert_eq!(columns.data[..4], [0, 127, 128, 1]);
        assert_eq!((columns.list[0].count, columns.list[0].bytes), (4, 4 + 10));
    }

    #[test]
    fn differences_keep_their_sign() {
        let mut columns = Columns::default();
        columns.delta("a", [5, 3, 3, u64::MAX]);
        // +5, -2, 0, and around the corner -4.
        assert_eq!(columns.data, [10, 3, 0, 7]);
    }

    #[test]
    fn what_is_deflated_comes_back() {
        let mut columns = Columns::default();
        columns.plain("a", 0..1000);
        let packed = columns.deflate(b"{}");
        let mut read = Vec::new();
        flate2::read::DeflateDecoder::new(&packed[..]).read_to_end(&mut read).unwrap();
        assert_eq!(read[..6], *b"\x02\0\0\0{}");
        assert_eq!(read[6..], columns.data);
        assert!(packed.len() < read.len());
    }
}
