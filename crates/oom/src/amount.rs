//! Amounts of memory as texts give them: rounded, and therefore intervals.

/// The bytes a number of a text can stand for: all from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    pub low: u64,
    pub high: u64,
}

/// No text means more than an exabyte: PyTorch itself refuses to try.
const MOST: u64 = 1 << 60;

/// Units by their names in lower case, longest first where one begins another.
///
/// The `KB`, `MB` and `GB` of these tools are powers of 1024 too: PyTorch, nvidia-smi and XLA wrote them
/// so before they wrote `MiB`.
const UNITS: [(&str, u64); 15] = [
    ("bytes", 1),
    ("byte", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("gb", 1 << 30),
    ("tb", 1 << 40),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
];

impl Amount {
    /// A number of bytes that was not rounded.
    pub fn exactly(bytes: u64) -> Amount {
        Amount { low: bytes.min(MOST), high: bytes.min(MOST) }
    }

    /// A number and its unit as written, rounded to its last digit: `23.65`, `gib`.
    pub(crate) fn rounded(number: &str, unit: u64) -> Option<Amount> {
        // `1900,00 MiB` where a comma is the point; thousands have three digits behind theirs.
        let is_point = |(_, after): (&str, &str)| matches!(after.len(), 1 | 2);
        let number = match number.split_once(',').is_some_and(is_point) {
            true => number.replace(',', "."),
            false => number.replace(',', ""),
        };
        let decimals = number.split_once('.').map_or(0, |(_, after)| after.len());
        let value: f64 = number.parse().ok()?;
        let centre = value * unit as f64;
        if !(0.0..=MOST as f64).contains(&centre) || 9 < decimals {
            return None;
        }
        // Bytes are never rounded; of everything else half of the last digit is open.
        let half = if unit == 1 { 0.0 } else { unit as f64 / 10f64.powi(decimals as i32) / 2.0 };
        let low = (centre - half).max(0.0).ceil() as u64;
        Some(Amount { low, high: ((centre + half).floor() as u64).max(low) })
    }

    /// Whole units of which the rest was cut off, as `memory_summary` does.
    pub(crate) fn cut(number: &str, unit: u64) -> Option<Amount> {
        let low = number.parse::<u64>().ok()?.checked_mul(unit).filter(|low| *low <= MOST)?;
        Some(Amount { low, high: low + unit - 1 })
    }

    /// Reads `22616MiB`, `20.5 GiB` or plain bytes; what follows the amount is not allowed.
    pub fn parse(text: &str) -> Option<Amount> {
        let text = text.trim().to_ascii_lowercase().replace(['_', ' '], "");
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Amount::rounded(&text, 1);
        }
        let (amount, length) = Amount::at(&text)?;
        (length == text.len()).then_some(amount)
    }

    /// The amount at the beginning of a text in lower case without blanks, and its length there.
    pub(crate) fn at(text: &str) -> Option<(Amount, usize)> {
        let is_digit = |byte: &u8| byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let whole = bytes.iter().take_while(|byte| is_digit(byte) || **byte == b',').count();
        let mut end = whole;
        if bytes.get(end) == Some(&b'.') {
            let digits = bytes.iter().skip(end + 1).take_while(|byte| is_digit(byte)).count();
            // NumPy writes `201. GiB`; a point before anything else ends a sentence.
            let is_unit = |rest: &str| UNITS.iter().any(|(name, _)| rest.starts_with(name));
            if digits != 0 || is_unit(&text[end + 1..]) {
                end += 1 + digits;
            }
        }
        if whole == 0 || bytes.first() == Some(&b',') || 24 < end {
            return None;
        }
        let rest = &text[end..];
        let (name, unit) = UNITS.iter().find(|(name, _)| rest.starts_with(name))?;
        Some((Amount::rounded(&text[..end], *unit)?, end + name.len()))
    }

    /// The amount that a text ends with, and where it begins.
    pub(crate) fn before(text: &str) -> Option<(Amount, usize)> {
        let is_of_one = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == ',';
        let start = text
            .rfind(|c: char| !is_of_one(c))
            .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        // Words run into the number where blanks were left out: try from each first digit on.
        let digits = text[start..].char_indices().filter(|(_, c)| c.is_ascii_digit());
        let mut previous = None;
        for (at, _) in digits {
            let begins = previous.is_none_or(|previous| previous + 1 != at);
            previous = Some(at);
            let part = &text[start + at..];
            match begins.then(|| Amount::at(part)).flatten() {
                Some((amount, length)) if length == part.len() => {
                    return Some((amount, start + at));
                }
                _ => {}
            }
        }
        None
    }

    /// The middle, which is what the text says.
    pub fn middle(self) -> u64 {
        self.low + (self.high - self.low) / 2
    }

    /// Can it be this many bytes?
    pub fn contains(self, bytes: u64) -> bool {
        self.low <= bytes && bytes <= self.high
    }

    pub fn plus(self, other: Amount) -> Amount {
        let most = MOST * 4;
        Amount {
            low: self.low.saturating_add(other.low).min(most),
            high: self.high.saturating_add(other.high).min(most),
        }
    }

    /// What remains, never below nothing; `None` if there cannot be enough.
    pub fn minus(self, other: Amount) -> Option<Amount> {
        let high = self.high.checked_sub(other.low)?;
        Some(Amount { low: self.low.saturating_sub(other.high).min(high), high })
    }

    /// The smaller of both.
    pub fn min(self, other: Amount) -> Amount {
        Amount { low: self.low.min(other.low), high: self.high.min(other.high) }
    }

    /// Is it at least the other, whatever was rounded away? `None` if that is open.
    pub fn at_least(self, other: Amount) -> Option<bool> {
        match () {
            () if other.high <= self.low => Some(true),
            () if self.high < other.low => Some(false),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_of_a_gib_leave_ten_mib_open() {
        let amount = Amount::parse("23.65 GiB").unwrap();
        assert_eq!(amount.high - amount.low, 10_737_417);
        assert!(amount.contains(25_394_000_000) && !amount.contains(25_400_000_000));
        assert_eq!(Amount::parse("0 bytes"), Some(Amount::exactly(0)));
        assert_eq!(Amount::parse("22616MiB").unwrap().middle(), 22_616 << 20);
        assert_eq!(Amount::parse("201. GiB").unwrap().middle(), 201 << 30);
    }

    #[test]
    fn what_is_no_amount_is_none() {
        for text in ["", "GiB", "1.2.3GiB", "12 apples", "9999999999GiB", "-1GiB", ".GiB", ",5GiB"]
        {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_are_found_where_blanks_are_gone() {
        let found = |text: &str| Amount::before(text).map(|(amount, at)| (amount.middle(), at));
        assert_eq!(found("gpu0;10.00gib"), Some((10 << 30, 5)));
        assert_eq!(found("ofwhich448.00kib"), Some((448 << 10, 7)));
        assert_eq!(found("is free.1.00gib"), Some((1 << 30, 8)));
        assert_eq!(found("process123has"), None);
    }

    #[test]
    fn differences_keep_what_is_open() {
        let (a, b) = (Amount { low: 10, high: 12 }, Amount { low: 11, high: 14 });
        assert_eq!(a.minus(b), Some(Amount { low: 0, high: 1 }));
        assert_eq!(a.minus(Amount::exactly(13)), None);
        assert_eq!((a.at_least(b), a.at_least(Amount::exactly(10))), (None, Some(true)));
    }
}
