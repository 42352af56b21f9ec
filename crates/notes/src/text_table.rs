//! Texts that notes refer to by number: names, and what tensors are.

use std::collections::HashMap;

use crate::hash::Map;

/// Tensors of more dimensions are looked up by their text.
pub const DIMENSIONS: usize = 8;

/// The number of a text.
pub type Word = u32;

/// The form of a tensor: its type by the address of its object, and its sizes, filled up with -1.
pub type Form = (usize, [i64; DIMENSIONS]);

/// What a node of the backward pass keeps: the node's name, that of what it keeps, and the module's number.
pub type Kept = (Word, Word, u32);

/// Each text once.
#[derive(Debug, Default)]
pub struct Words {
    list: Vec<String>,
    numbers: HashMap<String, Word>,
    forms: Map<Form, Word>,
    kept: Map<Kept, Word>,
}

impl Words {
    /// The number of a text.
    pub fn of(&mut self, text: &str) -> Word {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as Word;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// The text of a number.
    pub fn text(&self, word: Word) -> &str {
        &self.list[word as usize]
    }

    /// The text of a form, such as `float32[32, 64]`, if it is known.
    pub fn form(&self, form: &Form) -> Option<Word> {
        self.forms.get(form).copied()
    }

    /// This is the text of a form.
    pub fn set_form(&mut self, form: Option<Form>, text: &str) -> Word {
        let word = self.of(text);
        if let Some(form) = form {
            self.forms.insert(form, word);
        }
        word
    }

    /// The text of what a node keeps, if it is known.
    pub fn kept(&self, kept: &Kept) -> Option<Word> {
        self.kept.get(kept).copied()
    }

    /// `MulBackward0.self in encoder.layers.3`
    pub fn set_kept(&mut self, kept: Kept, path: &str) -> Word {
        let (node, field, _) = kept;
        let place = if path.is_empty() { String::new() } else { format!(" in {path}") };
        let text = format!("{}.{}{place}", self.text(node), self.text(field));
        let word = self.of(&text);
        self.kept.insert(kept, word);
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number() {
        let mut words = Words::default();
        let [a, b] = ["a", "b"].map(|text| words.of(text));
        assert_eq!((words.of("a"), words.text(b)), (a, "b"));
        assert_ne!(a, b);
    }

    #[test]
    fn forms_and_what_nodes_keep_are_found_again() {
        let mut words = Words::default();
        let form = (0x1000, [32, 64, -1, -1, -1, -1, -1, -1]);
        assert_eq!(words.form(&form), None);
        let word = words.set_form(Some(form), "float32[32, 64]");
        assert_eq!((words.form(&form), words.text(word)), (Some(word), "float32[32, 64]"));
        // One of too many dimensions is known by its text alone.
        assert_eq!(words.set_form(None, "float32[32, 64]"), word);
        let (node, field) = (words.of("MulBackward0"), words.of("self"));
        assert_eq!(words.kept(&(node, field, 3)), None);
        let kept = words.set_kept((node, field, 3), "encoder.layers.3");
        assert_eq!(words.text(kept), "MulBackward0.self in encoder.layers.3");
        assert_eq!(words.kept(&(node, field, 3)), Some(kept));
        let outside = words.set_kept((node, field, 0), "");
        assert_eq!(words.text(outside), "MulBackward0.self");
    }
}
