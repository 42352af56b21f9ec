//! Reading forward through the input; every read is checked.

use crate::pickle::error::Fault;

/// A place in the input.
pub(super) struct Cursor<'a> {
    /// The whole input.
    input: &'a [u8],
    /// Next byte to read; never beyond the end.
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self { input, at: 0 }
    }

    /// Bytes from the start of the input.
    pub(super) fn position(&self) -> u64 {
        self.at as u64
    }

    /// The next byte, `None` at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u8> {
        let byte = *self.input.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// The next `n` bytes.
    #[inline]
    pub(super) fn take(&mut self, n: u64) -> Result<&'a [u8], Fault> {
        let rest = self.rest();
        let Some(taken) = usize::try_from(n).ok().and_then(|n| rest.get(..n)) else {
            return Err(Fault::Truncated(n.saturating_sub(rest.len() as u64)));
        };
        self.at += taken.len();
        Ok(taken)
    }

    /// What is still to be read.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    /// Passes over `n` bytes of [`Self::rest`].
    #[inline]
    pub(super) fn skip(&mut self, n: usize) {
        self.at = self.input.len().min(self.at + n);
    }

    /// Checks that `n` more bytes are there, without reading them.
    pub(super) fn expect(&self, n: u64) -> Result<(), Fault> {
        let rest = (self.input.len() - self.at) as u64;
        if n <= rest { Ok(()) } else { Err(Fault::Truncated(n - rest)) }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let rest = self.rest();
        let Some(taken) = rest.first_chunk::<N>() else {
            return Err(Fault::Truncated((N - rest.len()) as u64));
        };
        self.at += N;
        Ok(*taken)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(super) fn i32(&mut self) -> Result<i32, Fault> {
        self.array().map(i32::from_le_bytes)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    /// A float, big endian as `BINFLOAT` stores it.
    #[inline]
    pub(super) fn f64(&mut self) -> Result<f64, Fault> {
        self.array().map(f64::from_be_bytes)
    }

    /// The bytes up to the next line feed, which is read too but not given.
    pub(super) fn line(&mut self) -> Result<&'a [u8], Fault> {
        let rest = self.rest();
        let Some((line, _)) =
            rest.iter().position(|&byte| byte == b'\n').and_then(|end| rest.split_at_checked(end))
        else {
            return Err(Fault::Truncated(1));
        };
        self.at += line.len() + 1;
        Ok(line)
    }
}
