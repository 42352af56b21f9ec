//! What a diagnosis gives: plain data.

use crate::remedies::Remedy;

/// A root cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Which detector, e.g. `attention-matrices`.
    pub id: &'static str,
    /// One line, without its size.
    pub title: String,
    /// Bytes of blocks that it explains.
    pub bytes: u64,
    /// Of what those bytes are a part.
    pub of: Whole,
    /// Whether no other finding counts these bytes; those that are counted add up.
    pub counted: bool,
    /// Sentences: what it is, and how that is known.
    pub explanation: String,
    /// What the short report says beneath the evidence: why no fused kernel was taken, or
    /// `a guess: 16,384 = batch 128 × 2 × num_group 64`; mostly empty.
    pub note: String,
    /// What it grows with, by the shapes of its tensors.
    pub scales: String,
    /// What proves it, largest first.
    pub evidence: Vec<Evidence>,
    /// What may be done about it.
    pub remedies: Vec<Remedy>,
}

/// A whole that bytes are a part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whole {
    /// `memory_allocated` at the moment; with the request that failed, if one ended the run.
    #[default]
    Allocated,
    /// `memory_reserved` at its own peak.
    Reserved,
}

impl Whole {
    pub fn name(self) -> &'static str {
        match self {
            Whole::Allocated => "allocated",
            Whole::Reserved => "reserved",
        }
    }
}

/// Tensors of one kind at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Bytes of their blocks.
    pub bytes: u64,
    pub count: u64,
    /// E.g. `float32`; empty if not known.
    pub dtype: String,
    /// Without meaning if the dtype is not known.
    pub shape: Vec<u64>,
    /// What they are: `ConvolutionBackward0.input`, `temporaries`.
    pub what: String,
    /// Their modules under one name.
    pub module: String,
    /// The operator, or the autograd node.
    pub operator: String,
    /// The user's file; empty if not known.
    pub file: String,
    /// The user's line.
    pub line: u32,
    /// The line of a package that it has led to.
    pub library: anatomy::LibraryLine,
}
