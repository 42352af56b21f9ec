//! The three numbers by which runs are compared.

/// The most that a run took, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// PyTorch's `max_memory_allocated`.
    pub allocated: u64,
    /// PyTorch's `max_memory_reserved`.
    pub reserved: u64,
    /// Taken from the card, context included.
    pub device: u64,
}
