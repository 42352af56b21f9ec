//! The text that PyTorch attaches to events: a part's serial number, and after it what the script itself has set.

/// Between the two; no text of the script's is likely to hold it.
const END: char = '\u{1f}';

/// The text for the events of a part.
pub fn text(serial: u64, own: Option<&str>) -> String {
    own.map_or_else(|| serial.to_string(), |own| format!("{serial}{END}{own}"))
}

/// The serial number in a text; 0 if it is not of ours.
pub fn serial(text: &str) -> u64 {
    text.split(END).next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// What the script has set, of a text of an event.
pub fn own(text: &str) -> &str {
    text.split_once(END).map_or("", |(_, own)| own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_own_text_travels_behind_the_number() {
        let both = text(7, Some("epoch 3"));
        assert_eq!((serial(&both), own(&both)), (7, "epoch 3"));
        assert_eq!((serial(&text(8, None)), own(&text(8, None))), (8, ""));
        // Set before the recorder began.
        assert_eq!((serial("epoch 3"), own("epoch 3")), (0, ""));
    }
}
