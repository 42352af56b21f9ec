//! A line's words: by place, or after a key.

use crate::state::{Block, BlockState, Segment};

/// The words of a line.
pub(super) struct Words<'a> {
    line: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    /// Splits at blanks.
    pub(super) fn of(line: &'a str) -> Words<'a> {
        Words { line, words: line.split_whitespace().collect() }
    }

    /// The word at a place.
    pub(super) fn at(&self, index: usize) -> Result<&'a str, String> {
        self.words.get(index).copied().ok_or_else(|| format!("`{}` ends too early", self.line))
    }

    /// The number at a place.
    pub(super) fn number(&self, index: usize) -> Result<u64, String> {
        number(self.at(index)?)
    }

    /// The word after a key, if the key is there.
    fn word_after(&self, key: &str) -> Option<Result<&'a str, String>> {
        let found = self.words.iter().position(|word| *word == key);
        found.map(|index| self.at(index + 1))
    }

    /// The number after a key; 0 without the key.
    pub(super) fn after(&self, key: &str) -> Result<u64, String> {
        self.word_after(key).map_or(Ok(0), |word| number(word?))
    }

    /// As [`Words::after`], for numbers of rows and the like.
    pub(super) fn small(&self, key: &str) -> Result<u32, String> {
        self.small_if(key).map(Option::unwrap_or_default)
    }

    /// As [`Words::small`], `None` without the key.
    pub(super) fn small_if(&self, key: &str) -> Result<Option<u32>, String> {
        let Some(word) = self.word_after(key) else { return Ok(None) };
        let word = word?;
        let small = u32::try_from(number(word)?);
        small.map(Some).map_err(|_| format!("`{word}` is too large"))
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
}

/// A decimal or hexadecimal number.
pub(super) fn number(word: &str) -> Result<u64, String> {
    let parsed = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => word.parse(),
    };
    parsed.map_err(|_| format!("`{word}` is not a number"))
}

/// The pool of a line, as in `pool 1.0`; the default pool if it names none.
pub(super) fn pool(words: &Words<'_>) -> Result<(u32, u32), String> {
    let Some(word) = words.word_after("pool") else { return Ok((0, 0)) };
    let (a, b) = word?.split_once('.').ok_or("a pool is written `1.0`".to_owned())?;
    let part = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is not a number"));
    Ok((part(a)?, part(b)?))
}

/// `segment 0x100000 2097152 small stream 7 pool 1.0 expandable`, without its blocks.
pub(super) fn segment(words: &Words<'_>) -> Result<Segment, String> {
    Ok(Segment {
        address: words.number(1)?,
        size: words.number(2)?,
        stream: words.after("stream")?,
        pool: pool(words)?,
        large: words.has("large"),
        expandable: words.has("expandable"),
        blocks: Vec::new(),
    })
}

/// `block 0x100000 512 active_allocated requested 3`.
pub(super) fn block(words: &Words<'_>) -> Result<Block, String> {
    let name = words.at(3)?;
    Ok(Block {
        address: words.number(1)?,
        size: words.number(2)?,
        state: BlockState::from_name(name).ok_or(format!("`{name}` is no state"))?,
        requested: words.after("requested")?,
    })
}
