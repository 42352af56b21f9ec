//! Bytes of a file of JSON as text that every reader takes.

/// What stands for characters that are none, as an escape.
const REPLACED: &[u8] = b"\\ufffd";

/// The text, and how many characters had to be replaced by `�`. Python writes a byte of a file's name that is
/// no UTF-8 as one half of a pair of surrogates, `"\udcff"`, for which no reader of JSON but its own has a
/// character; such a half is taken out of the text before it is read.
pub(super) fn repaired(bytes: &[u8]) -> (String, usize) {
    let mut fixed = Vec::with_capacity(bytes.len());
    let (mut rest, mut replaced) = (bytes, 0);
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        fixed.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let (length, is_half) = match (surrogate(rest), surrogate(rest.get(6..).unwrap_or(&[]))) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (12, false),
            (Some(_), _) => (6, true),
            (None, _) => (rest.len().min(2), false),
        };
        fixed.extend_from_slice(if is_half { REPLACED } else { &rest[..length] });
        replaced += usize::from(is_half);
        rest = &rest[length..];
    }
    fixed.extend_from_slice(rest);
    for piece in fixed.utf8_chunks() {
        replaced += usize::from(!piece.invalid().is_empty());
    }
    (String::from_utf8_lossy(&fixed).into_owned(), replaced)
}

/// Half of a pair, if an escape of one begins here.
fn surrogate(text: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(text.strip_prefix(b"\\u")?.get(..4)?).ok()?;
    u32::from_str_radix(digits, 16).ok().filter(|half| (0xd800..0xe000).contains(half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[u8], text: &str, replaced: usize) {
        let (fixed, count) = repaired(given);
        let read: serde_json::Value = serde_json::from_str(&fixed).unwrap();
        assert_eq!((read.as_str(), count), (Some(text), replaced));
    }

    #[test]
    fn halves_of_pairs_are_replaced_and_all_else_is_kept() {
        check(br#""caf\udce9.py""#, "caf\u{fffd}.py", 1);
        check(br#""\ud83d""#, "\u{fffd}", 1);
        check(br#""\udce9\ud83d\udce9""#, "\u{fffd}\u{1f4e9}", 1);
        check(br#""\ud83d\ude00 \u00e9 \\udce9 \n""#, "\u{1f600} \u{e9} \\udce9 \n", 0);
        check(br#""\ud83d\n""#, "\u{fffd}\n", 1);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        check(b"\"caf\xe9.py\"", "caf\u{fffd}.py", 1);
    }

    #[test]
    fn what_is_cut_stays_cut() {
        for end in [br#""a\"#.as_slice(), br#""a\ud8"#, br#""a\ud83d\"#, br#""a\ud83d\ude"#] {
            assert!(serde_json::from_str::<serde_json::Value>(&repaired(end).0).is_err());
        }
    }
}
