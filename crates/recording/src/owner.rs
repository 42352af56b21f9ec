//! Who is behind an allocation. Everything is interned: an event carries one small number.

use std::collections::HashMap;

/// A text of a [`Text`] table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

/// A row of `Recording::frames`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// A row of `Recording::stacks`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// A row of `Recording::owners`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(pub u32);

/// Interned texts. Number 0 is always the empty text.
#[derive(Clone, Debug)]
pub struct Text {
    texts: Vec<String>,
    numbers: HashMap<String, TextId>,
}

impl Default for Text {
    fn default() -> Text {
        Text { texts: vec![String::new()], numbers: HashMap::from([(String::new(), TextId(0))]) }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Text {}

impl Text {
    /// The number of a text, new or known.
    pub fn intern(&mut self, text: &str) -> TextId {
        if let Some(id) = self.numbers.get(text) {
            return *id;
        }
        let id = TextId(self.texts.len() as u32);
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), id);
        id
    }

    /// The text of a number; empty if there is none.
    pub fn get(&self, id: TextId) -> &str {
        self.texts.get(id.0 as usize).map_or("", String::as_str)
    }

    /// All texts, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// How many texts there are, the empty one included.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Never: the empty text is always there.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// One line of source code that was running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    pub file: TextId,
    pub function: TextId,
    /// From 1; 0 if not known.
    pub line: u32,
    /// What stands there, without the blanks around it; empty if not known. Numbers of lines shift from
    /// one commit to the next, and the file may be gone: the text tells which line it was.
    pub source: TextId,
}

/// A call stack: its innermost frame, and the stack of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The innermost frame.
    pub frame: FrameId,
    /// `None` at the outermost frame.
    pub caller: Option<StackId>,
}

/// What an allocation belongs to, as far as it is known when it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Path of the module that was running, e.g. `encoder.layers.3.attn`.
    pub module: TextId,
    /// The operator, e.g. `aten.convolution`.
    pub operator: TextId,
    /// For allocations of a backward pass: the autograd node, e.g. `ConvolutionBackward0`.
    pub node: TextId,
    /// Where in the source; for a backward pass the line of the forward pass that caused it.
    pub stack: Option<StackId>,
}
