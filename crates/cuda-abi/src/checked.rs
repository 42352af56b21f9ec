//! Arguments that are checked by their type, before a function sees them.

use std::ffi::{c_int, c_uint, c_void};

use crate::types::Handle;

macro_rules! checked {
    ($($(#[$text:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$text])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub $inner);
    )*};
}

checked! {
    /// Anything but null.
    NonNull(usize);
    /// A kernel by the address of its stub on the host: anything but null.
    Function(usize);
    /// The number of a card that is there.
    Ordinal(c_int);
    /// `cudaMemcpyKind`.
    Direction(c_int);
    /// A grid that a card can launch.
    Grid(Dim3);
    /// A block that a card can hold.
    Block(Dim3);
    /// A memory pool: every card has one.
    Pool(usize);
    /// A context: every card has one.
    Context(usize);
    /// A card, to NVML.
    NvmlDevice(usize);
    /// `ncclDataType_t`.
    DataType(c_int);
    /// `ncclRedOp_t`: one of NCCL's own, or one that was made.
    Operation(c_int);
    /// A plan of cuFFT.
    Plan(c_int);
}

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dim3 {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

/// `cudaLaunchConfig_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfiguration {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared: usize,
    pub stream: Handle,
    pub attributes: *const c_void,
    pub attribute_count: c_uint,
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DriverLaunchConfiguration {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared: c_uint,
    pub stream: Handle,
    pub attributes: *const c_void,
    pub attribute_count: c_uint,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Where the headers of CUDA 12 and 13 have them.
    #[test]
    fn both_configurations_have_the_stream_at_the_same_place() {
        assert_eq!(offset_of!(LaunchConfiguration, shared), 24);
        assert_eq!(offset_of!(LaunchConfiguration, stream), 32);
        assert_eq!(offset_of!(DriverLaunchConfiguration, shared), 24);
        assert_eq!(offset_of!(DriverLaunchConfiguration, stream), 32);
    }
}
