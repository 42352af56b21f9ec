//! Work areas of cuDNN.

/// Work areas of one kind of call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// E.g. `convolution forward`.
    pub kind: &'static str,
    /// Their name as tensors.
    pub name: &'static str,
    /// Whether the real cuDNN gave every size, for this card; else a model did.
    pub is_exact: bool,
    /// How many calls there were.
    pub calls: u64,
    /// The most bytes that one of them needed.
    pub largest_bytes: u64,
}
