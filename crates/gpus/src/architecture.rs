//! What depends on the compute capability alone: the limits of a multiprocessor and of a block.

use crate::table;

/// The limits that all cards of one compute capability share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Compute capability, as in 8.6.
    pub compute_capability: (u32, u32),
    /// The family's name: Pascal, Volta, Turing, Ampere, Ada, Hopper, Blackwell.
    pub family: &'static str,
    /// Threads that one multiprocessor can hold.
    pub threads_per_multiprocessor: u32,
    /// Blocks that one multiprocessor can hold.
    pub blocks_per_multiprocessor: u32,
    /// 32-bit registers of one multiprocessor; a block can have them all.
    pub registers_per_multiprocessor: u32,
    /// Bytes of shared memory of one multiprocessor.
    pub shared_per_multiprocessor: u64,
    /// Bytes of shared memory that a block can have when its kernel opts in.
    pub shared_per_block_optin: u64,
    /// Bytes of shared memory that the system takes from each block.
    pub shared_reserved_per_block: u64,
    /// Multiply-adds in single precision that one multiprocessor does per clock.
    pub multiply_adds_per_clock: u32,
}

impl Architecture {
    /// Threads of a warp.
    pub const WARP_SIZE: u32 = 32;
    /// Threads of the largest block.
    pub const THREADS_PER_BLOCK: u32 = 1024;
    /// Bytes of shared memory that a block can have without opting in.
    pub const SHARED_PER_BLOCK: u64 = 48 * 1024;
    /// Bytes of constant memory.
    pub const CONSTANT_MEMORY: u64 = 64 * 1024;
    /// The largest block in x, y and z.
    pub const BLOCK_SIZE: [u32; 3] = [1024, 1024, 64];
    /// The largest grid in x, y and z.
    pub const GRID_SIZE: [u32; 3] = [2_147_483_647, 65_535, 65_535];

    /// Registers that a block can have.
    pub fn registers_per_block(&self) -> u32 {
        self.registers_per_multiprocessor
    }

    /// The compute capability in the form of compiler flags: 86 for 8.6, 120 for 12.0.
    pub fn sm(&self) -> u32 {
        self.compute_capability.0 * 10 + self.compute_capability.1
    }
}

/// Every architecture, oldest first.
pub fn architectures() -> &'static [Architecture] {
    table::architectures()
}
