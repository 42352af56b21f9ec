//! A line's words: by place, or after a key. What nobody asked for has no meaning, and is refused.

use std::cell::RefCell;

use super::hint::hint;
use crate::state::{Block, BlockState, Segment};

/// The words of a line.
pub(super) struct Words<'a> {
    line: &'a str,
    words: Vec<&'a str>,
    asked: RefCell<Asked>,
}

/// What was looked for, so that what is left over can be told, and what could have stood there.
struct Asked {
    /// For each word, whether it was taken.
    taken: Vec<bool>,
    keys: Vec<&'static str>,
}

impl<'a> Words<'a> {
    /// Splits at blanks.
    pub(super) fn of(line: &'a str) -> Words<'a> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let asked = Asked { taken: vec![false; words.len()], keys: Vec::new() };
        Words { line, words, asked: RefCell::new(asked) }
    }

    pub(super) fn line(&self) -> &'a str {
        self.line
    }

    /// The word at a place.
    pub(super) fn at(&self, index: usize) -> Result<&'a str, String> {
        let word =
            self.words.get(index).ok_or_else(|| format!("`{}` ends too early", self.line))?;
        self.take(index);
        Ok(word)
    }

    /// The number at a place.
    pub(super) fn number(&self, index: usize) -> Result<u64, String> {
        number(self.at(index)?)
    }

    /// The word after a key, if the key is there.
    fn word_after(&self, key: &'static str) -> Option<Result<&'a str, String>> {
        self.key(key).map(|index| self.at(index + 1))
    }

    /// The number after a key; 0 without the key.
    pub(super) fn after(&self, key: &'static str) -> Result<u64, String> {
        self.word_after(key).map_or(Ok(0), |word| number(word?))
    }

    /// As [`Words::after`], for numbers of rows and the like.
    pub(super) fn small(&self, key: &'static str) -> Result<u32, String> {
        self.small_if(key).map(Option::unwrap_or_default)
    }

    /// As [`Words::small`], `None` without the key.
    pub(super) fn small_if(&self, key: &'static str) -> Result<Option<u32>, String> {
        let Some(word) = self.word_after(key) else { return Ok(None) };
        let word = word?;
        let small = u32::try_from(number(word)?);
        small.map(Some).map_err(|_| format!("`{word}` is too large"))
    }

    fn has(&self, word: &'static str) -> bool {
        self.key(word).is_some()
    }

    /// Says what is wrong with the first word that nobody asked for.
    pub(super) fn nothing_else(&self) -> Result<(), String> {
        let Asked { taken, keys } = &*self.asked.borrow();
        let left = self.words.iter().zip(taken).find(|(_, is_taken)| !**is_taken);
        let Some((&word, _)) = left else { return Ok(()) };
        if keys.contains(&word) {
            return Err(format!("`{word}` stands twice in `{}`", self.line));
        }
        Err(format!("`{word}` has no meaning in `{}`{}", self.line, hint(word, keys)))
    }

    fn key(&self, key: &'static str) -> Option<usize> {
        self.asked.borrow_mut().keys.push(key);
        let index = self.words.iter().position(|word| *word == key)?;
        self.take(index);
        Some(index)
    }

    fn take(&self, index: usize) {
        if let Some(taken) = self.asked.borrow_mut().taken.get_mut(index) {
            *taken = true;
        }
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
    words.at(0)?;
    let segment = Segment {
        address: words.number(1)?,
        size: words.number(2)?,
        stream: words.after("stream")?,
        pool: pool(words)?,
        // No short cut: both words have to be asked for.
        large: !words.has("small") & words.has("large"),
        expandable: words.has("expandable"),
        blocks: Vec::new(),
    };
    words.nothing_else()?;
    Ok(segment)
}

/// `block 0x100000 512 active_allocated requested 3`.
pub(super) fn block(words: &Words<'_>) -> Result<Block, String> {
    words.at(0)?;
    let name = words.at(3)?;
    let block = Block {
        address: words.number(1)?,
        size: words.number(2)?,
        state: BlockState::from_name(name).ok_or(format!("`{name}` is no state"))?,
        requested: words.after("requested")?,
    };
    words.nothing_else()?;
    Ok(block)
}
