//! Events of PyTorch's caching allocator, and marks between them.

use crate::owner::{OwnerId, TextId};

/// One thing that happened. Actions of the allocator are named as in PyTorch's memory snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block was handed out. `size` is what was asked for; the block may be larger.
    Alloc {
        /// Start of the block.
        address: u64,
        /// Bytes asked for.
        size: u64,
        /// The raw stream; 0 is the default stream.
        stream: u64,
        owner: OwnerId,
        /// Private pool, as (0, 0) for the default pool.
        pool: (u32, u32),
    },
    /// The block was given back by its user; streams may still use it.
    FreeRequested {
        /// Start of the block.
        address: u64,
        /// Bytes asked for when it was made.
        size: u64,
    },
    /// The block went back to its pool.
    FreeCompleted {
        /// Start of the block.
        address: u64,
        /// Bytes asked for when it was made.
        size: u64,
    },
    /// A segment was taken from the card.
    SegmentAlloc {
        /// Start of the segment.
        address: u64,
        size: u64,
        /// The raw stream.
        stream: u64,
        /// Private pool, as (0, 0) for the default pool.
        pool: (u32, u32),
    },
    /// A segment was given back to the card.
    SegmentFree {
        /// Start of the segment.
        address: u64,
        size: u64,
        /// The raw stream.
        stream: u64,
        /// Private pool, as (0, 0) for the default pool.
        pool: (u32, u32),
    },
    /// Pages of an expandable segment were mapped.
    SegmentMap {
        /// Start of the pages.
        address: u64,
        size: u64,
        /// The raw stream.
        stream: u64,
        /// Private pool, as (0, 0) for the default pool.
        pool: (u32, u32),
    },
    /// Pages of an expandable segment were unmapped.
    SegmentUnmap {
        /// Start of the pages.
        address: u64,
        size: u64,
        /// The raw stream.
        stream: u64,
        /// Private pool, as (0, 0) for the default pool.
        pool: (u32, u32),
    },
    /// The card had no room, and PyTorch raised its error.
    OutOfMemory {
        /// Rounded bytes of the request.
        size: u64,
        /// What the card had left.
        free: u64,
        /// The raw stream.
        stream: u64,
        /// Private pool, as (0, 0) for the default pool.
        pool: (u32, u32),
    },
    /// Not the allocator's: something the reader should know at this point.
    Mark(Mark),
}

impl Event {
    /// Did the allocator do it? Marks are notes about what it did.
    pub fn is_of_allocator(&self) -> bool {
        !matches!(self, Event::Mark(_))
    }
}

/// What runs from a mark on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Before the first forward pass.
    #[default]
    Construction,
    /// Up to a backward pass.
    Forward,
    /// Inside a backward pass.
    Backward,
    /// Between backward pass and optimizer: clipping, unscaling.
    BeforeOptimizer,
    /// Inside an optimizer's step.
    Optimizer,
    /// Forward passes without gradients.
    Evaluation,
    /// Writing a checkpoint.
    Saving,
    /// After the last step.
    AfterTraining,
    /// Forward passes of a script without any backward pass.
    Inference,
}

/// What a live allocation turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    #[default]
    Unknown,
    Weights,
    /// A parameter's gradient.
    Gradients,
    /// An optimizer's state.
    Optimizer,
    /// Kept by autograd for the backward pass.
    Activations,
    /// A batch, or part of one.
    Inputs,
    /// A module's buffer.
    Buffers,
    /// An extra copy of the parameters: EMA or teacher.
    ModelCopies,
    /// Parameters cast by autocast.
    Casts,
    /// Made and dropped on the way.
    Temporaries,
    /// Scratch memory of a library.
    Workspace,
    /// Parameters that are sharded over ranks, gathered for use.
    Unsharded,
    /// Buffers of collectives: buckets of gradients, what is gathered or scattered.
    Communication,
    /// Keys and values of earlier tokens, kept for the next ones.
    KvCache,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// From here on this phase runs.
    Phase {
        phase: Phase,
        /// Optimizer steps taken so far, plus one.
        step: u32,
    },
    /// The live allocation that contains `address` is this.
    Name {
        /// Inside the allocation.
        address: u64,
        /// What it is.
        category: Category,
        /// Its name, e.g. `encoder.weight`; for activations who keeps them: `AddmmBackward0.mat1`.
        name: TextId,
    },
    /// The live allocation that contains `address` holds a tensor of this dtype and shape.
    Tensor {
        /// Inside the allocation.
        address: u64,
        /// Dtype and shape, e.g. `float32[512, 512]`.
        what: TextId,
    },
    /// Who made the live allocation that contains `address`, where its own event does not say; with
    /// address 0, whose request it was that failed last.
    Owner {
        /// Inside the allocation, or 0.
        address: u64,
        owner: OwnerId,
    },
    /// What keeps the live allocation that contains `address` from being freed.
    Holder {
        /// Inside the allocation.
        address: u64,
        /// E.g. `the result of train.py:18`.
        by: TextId,
    },
    /// The live allocation that contains `address` belongs to a method of distributed training.
    Area {
        /// Inside the allocation.
        address: u64,
        /// E.g. `gradient buckets (DDP)`; a number after `#` tells parts of one area from each other.
        area: TextId,
    },
    /// PyTorch would have gone on without the live allocation that contains `address`: a work area for which it has
    /// another way.
    Soft {
        /// Inside the allocation.
        address: u64,
    },
    /// By what the category of the live allocation that contains `address` is known, where nobody recorded it.
    Evidence {
        /// Inside the allocation.
        address: u64,
        /// E.g. `frames` or `lifetimes`.
        by: TextId,
    },
    /// The free that was requested last is deferred: it waits for work of other streams.
    Deferred,
    /// A deferred free would have completed by now on any card: the host has waited for a stream that
    /// it waits for. The last such mark of a free counts.
    Idle {
        /// Which of the recording's deferred frees, from 0.
        free: u32,
    },
}
