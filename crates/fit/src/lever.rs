//! The levers that can be tried, in the order in which they are worth it.

pub use diagnose::Label;

/// A lever of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lever {
    /// One without options.
    Plain(&'static str),
    /// A setting of PyTorch's allocator.
    Allocator(String),
    /// Activations of these modules are computed again.
    Checkpoint(Vec<String>),
    /// Batches in so many parts.
    Accumulate(u32),
    /// These modules are not trained.
    Freeze(Vec<String>),
    /// A knob of the user's at another value.
    Knob {
        /// Which.
        name: String,
        /// To what.
        value: String,
    },
}

impl Lever {
    /// Its id.
    pub fn id(&self) -> &str {
        match self {
            Lever::Plain(id) => id,
            Lever::Allocator(_) => "allocator",
            Lever::Checkpoint(_) => "checkpoint",
            Lever::Accumulate(_) => "accumulate",
            Lever::Freeze(_) => "freeze",
            Lever::Knob { name, .. } => name,
        }
    }
}

/// Free of cost: tried one by one, and those that help together.
pub const FREE: [&str; 6] = [
    "zero-grad",
    "bucket-view",
    "no-foreach",
    "ema-cpu",
    "fused-attention",
    "chunked-cross-entropy",
];

/// Free of cost as well, but tried only where a cause of the peak asks for them.
pub const IF_ASKED: [&str; 2] = ["fused-optimizer", "channels-last"];

/// Asked beside the first look whether they find something to act on: they do not make a script fail.
pub const PROBED: [&str; 8] = [
    "zero-grad",
    "bucket-view",
    "no-foreach",
    "ema-cpu",
    "fused-attention",
    "chunked-cross-entropy",
    "accumulate",
    "fused-optimizer",
];

/// Levers without options that stand for themselves, with their labels.
pub const PLAIN: [(&str, Label); 15] = [
    ("zero-grad", Label::Exact),
    ("bucket-view", Label::Exact),
    ("no-foreach", Label::Exact),
    ("ema-cpu", Label::Exact),
    ("offload", Label::Exact),
    ("fused-attention", Label::NumericallyEqual),
    ("fused-optimizer", Label::NumericallyEqual),
    ("chunked-cross-entropy", Label::NumericallyEqual),
    ("channels-last", Label::NumericallyEqual),
    ("amp-bf16", Label::ChangesNumerics),
    ("amp-fp16", Label::ChangesNumerics),
    ("half-frozen", Label::ChangesNumerics),
    ("8bit-optimizer", Label::ChangesTraining),
    ("adafactor", Label::ChangesTraining),
    ("sgd", Label::ChangesTraining),
];

/// The label of a lever before it was tried.
pub fn label(lever: &Lever) -> Label {
    match lever {
        Lever::Allocator(_) | Lever::Checkpoint(_) => Label::Exact,
        Lever::Accumulate(_) => Label::NumericallyEqual,
        Lever::Freeze(_) => Label::ChangesTraining,
        // What a setting of the user's means, only the user knows.
        Lever::Knob { .. } => Label::ChangesTraining,
        Lever::Plain(id) => {
            PLAIN.iter().find(|row| row.0 == *id).map_or(Label::ChangesFunction, |row| row.1)
        }
    }
}
