//! The text forms of protocol 0, and integers of any length.

use crate::pickle::error::Fault;

const NO_HEX: Fault = Fault::Malformed("hex digits");

/// A little-endian two's complement integer of any length, as `LONG1` and `LONG4` store it;
/// `None` if it does not fit.
pub(super) fn long<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let sign = |byte: Option<&u8>| byte.is_some_and(|top| top & 0x80 != 0);
    let fill = if sign(bytes.last()) { 0xff } else { 0 };
    let (low, high) = bytes.split_at(bytes.len().min(N));
    let mut value = [fill; N];
    value.iter_mut().zip(low).for_each(|(byte, low)| *byte = *low);
    // What stands above the width must only repeat the sign.
    let fits = high.iter().all(|&byte| byte == fill) && sign(value.last()) == sign(bytes.last());
    fits.then_some(value)
}

/// A decimal integer, with or without the `L` of Python 2.
pub(super) fn decimal(line: &[u8]) -> Result<i128, Fault> {
    let digits = line.strip_suffix(b"L").unwrap_or(line);
    let text = std::str::from_utf8(digits).map_err(|_| Fault::Malformed("a decimal integer"))?;
    text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
            Fault::TooLarge("a decimal integer that does not fit into 128 bits")
        }
        _ => Fault::Malformed("a decimal integer"),
    })
}

/// A memo index written in decimal.
pub(super) fn index(line: &[u8]) -> Result<u64, Fault> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    text.parse().map_err(|_| Fault::Malformed("a memo index"))
}

/// A float as `repr` writes it.
pub(super) fn float(line: &[u8]) -> Result<f64, Fault> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    text.parse().map_err(|_| Fault::Malformed("a decimal float"))
}

/// `raw-unicode-escape` to UTF-8: Latin-1 with `\uXXXX` and `\UXXXXXXXX`.
///
/// A lone surrogate becomes U+FFFD.
pub(super) fn raw_unicode(line: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = match tail.first() {
            Some(b'u') if byte == b'\\' => 4,
            Some(b'U') if byte == b'\\' => 8,
            _ => {
                out.push(char::from(byte));
                rest = tail;
                continue;
            }
        };
        let (escape, after) = tail.split_at_checked(1 + digits).ok_or(NO_HEX)?;
        let code = escape.get(1..).and_then(hex).ok_or(NO_HEX)?;
        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = after;
    }
    Ok(out.into_bytes())
}

/// The `repr` of a Python 2 string: quoted, with backslash escapes.
pub(super) fn quoted(line: &[u8]) -> Result<Vec<u8>, Fault> {
    let line = line.trim_ascii();
    let inner = match line {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
        _ => return Err(Fault::Malformed("a string in quotes")),
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some((&escape, tail)) = rest.split_first() else {
            return Err(Fault::Malformed("a character after the backslash"));
        };
        rest = tail;
        match escape {
            b'\n' => {}
            b'\\' | b'\'' | b'"' => out.push(escape),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'x' => {
                let (digits, after) = rest.split_at_checked(2).ok_or(NO_HEX)?;
                out.push(hex(digits).ok_or(NO_HEX)? as u8);
                rest = after;
            }
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|d| (b'0'..=b'7').contains(d)).count();
                let (digits, after) = rest.split_at(more);
                let octal = digits.iter().fold(u32::from(escape - b'0'), |value, digit| {
                    value * 8 + u32::from(digit - b'0')
                });
                out.push(octal as u8);
                rest = after;
            }
            other => out.extend([b'\\', other]),
        }
    }
    Ok(out)
}

/// A number of at most eight hex digits, digits only.
fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value: u32, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(value << 4 | digit)
    })
}
