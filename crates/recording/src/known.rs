//! How a number of a report is known.

/// How a number is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// By the real allocator, a replay that equals it to the byte, or a text that says it.
    #[default]
    Measured,
    /// It follows from a model, such as parameters times bytes.
    Modelled,
    /// It is taken to be so.
    Assumed,
}

impl Known {
    /// The word for people and for JSON.
    pub fn name(self) -> &'static str {
        match self {
            Known::Measured => "measured",
            Known::Modelled => "modelled",
            Known::Assumed => "assumed",
        }
    }
}
