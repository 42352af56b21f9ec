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

/// Levers without options that stand for themselves, with their labels.
pub const PLAIN: [(&str, Label); 16] = [
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
    ("freeze", Label::ChangesTraining),
];

/// The label of a lever before it was tried.
pub fn label(lever: &Lever) -> Label {
    match lever {
        Lever::Allocator(_) | Lever::Checkpoint(_) => Label::Exact,
        Lever::Accumulate(_) => Label::NumericallyEqual,
        // What a setting of the user's means, only the user knows.
        Lever::Knob { .. } => Label::ChangesTraining,
        Lever::Plain(id) => {
            PLAIN.iter().find(|row| row.0 == *id).map_or(Label::ChangesFunction, |row| row.1)
        }
    }
}
