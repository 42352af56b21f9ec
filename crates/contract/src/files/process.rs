//! `process.<pid>.json`: what the doorway saw of one process, written after steps and at its end.

use super::File;
use super::shape::records;

impl File for Process {
    const KIND: &'static str = "process";
    const TELLS: &'static str = "the process's steps and phases, PyTorch's own peaks, out-of-memory errors that it \
                                 caught, values that were assumed, versions, and how it ended";
}

records! {
    /// What was seen of one process.
    Process {
        /// Its number.
        pid: u64,
        /// The version of Python.
        python: String,
        /// The version of torch.
        torch: String,
        /// The version of CUDA that torch was built with.
        cuda: Option<String>,
        /// The version of cuDNN, 0 if it could not be asked.
        cudnn: u64,
        /// Architectures that torch has kernels for, as `sm_80`.
        architectures: Vec<String>,
        /// Steps of the optimizer that took most.
        steps: u64,
        /// Steps of all optimizers together.
        steps_of_all: u64,
        /// Backward passes up to the last step.
        backward_passes: u64,
        /// How long the last step took, data included, in milliseconds.
        step_milliseconds: u64,
        /// The cards that it used.
        devices: Vec<Device>,
        /// The last requests that PyTorch's allocator could not meet.
        refusals: Vec<Refusal>,
        /// How many there were in all.
        refusal_count: u64,
        /// What the script decided by values that are not known.
        decisions: Vec<Decided>,
        /// Texts that were sampled to their full length, since nobody knows where they end.
        generations: Vec<Generation>,
        /// What its steps are: of an `optimizer`, an `update` by hand, a `backward` pass, or a `call` of a model without one.
        rounds: Option<String>,
        /// Errors of ours, which the script did not see.
        faults: Vec<Fault>,
        /// Of a training that was shortened: what it iterated over.
        loaders: Vec<Loader>,
        /// Of a training that was shortened: lines of the script that begin an evaluation, and that it did not come to.
        unreached: Vec<Site>,
        /// Of a training that was shortened: what it was kept from, in words.
        refused: Vec<String>,
        /// How it ended; nothing as long as it runs.
        end: Option<End>,
    }

    /// A card as PyTorch saw it.
    Device {
        /// Its number in this process.
        device: u64,
        /// The most that tensors took, with rounding.
        allocated: Option<Moment>,
        /// The most that PyTorch took from the card.
        reserved: Option<Moment>,
        /// The most that was asked for.
        requested: Option<Moment>,
        /// All that was ever allocated.
        total_bytes: u64,
        /// How often PyTorch emptied its cache for want of room in the last step.
        flushes: u64,
    }

    /// A peak and when it was.
    Moment {
        /// How much.
        bytes: u64,
        /// In which phase.
        phase: String,
        /// In which step, from 1.
        step: u64,
    }

    /// A line of the user's.
    Site {
        /// The file.
        file: String,
        /// The line.
        line: u64,
    }

    /// A loader of batches, in a training that was shortened.
    Loader {
        /// Whether it was read without gradients.
        is_evaluation: bool,
        /// Batches of a pass, as the script has it; nothing if it does not say so.
        batches: Option<u64>,
        /// Batches that a pass gave, at most.
        given: u64,
        /// Passes that came to their end.
        passes: u64,
        /// Batches whose sizes were looked at.
        looked_at: u64,
        /// The tensor of a batch whose size varies, by its place in the batch.
        varies: Option<String>,
        /// Its shape in the smallest batch.
        smallest: Vec<u64>,
        /// Its shape in the largest batch.
        largest: Vec<u64>,
        /// Whether the largest was given, at the end of a pass.
        was_largest_given: bool,
        /// With another order of batches: the shape of the largest tensor of each that was given.
        sizes_given: Vec<Vec<u64>>,
        /// Memory of the card that each batch of an evaluation leaves behind.
        grows_bytes: u64,
    }

    /// A request that could not be met.
    Refusal {
        /// On which card, by its number in this process.
        device: u64,
        /// What was asked for.
        tried_bytes: u64,
        /// What the card had left.
        free_bytes: u64,
        /// In which phase.
        phase: String,
        /// In which step, from 1.
        step: u64,
        /// Steps that all optimizers had taken.
        steps_done: u64,
        /// The user's file.
        file: Option<String>,
        /// Its line.
        line: Option<u64>,
    }

    /// Something that the script decided by values which are not known.
    Decided {
        /// The function that wanted them.
        operator: String,
        /// Why they are not known.
        why: String,
        /// What was taken instead.
        assumed: String,
        /// The user's file.
        file: Option<String>,
        /// Its line.
        line: Option<u64>,
        /// The library's file below it.
        library_file: Option<String>,
        /// Its line.
        library_line: Option<u64>,
        /// How often.
        count: u64,
    }

    /// Texts that one line samples.
    Generation {
        /// The most that were sampled one after the other; 0 where the script reads tokens itself.
        tokens: u64,
        /// The user's file.
        file: Option<String>,
        /// Its line.
        line: Option<u64>,
    }

    /// An error of ours.
    Fault {
        /// What it costs, in words.
        loss: String,
        /// The error.
        error: String,
        /// Where it happened.
        place: String,
        /// In which phase.
        phase: Option<String>,
        /// In which step, from 1.
        step: Option<u64>,
    }

    /// How a process ended.
    End {
        /// `exit`, `stopped` after the wanted steps, `out_of_memory` or `exception`.
        kind: String,
        /// The error's message.
        message: Option<String>,
        /// The error's class.
        exception as "type": Option<String>,
        /// The user's file.
        file: Option<String>,
        /// Its line.
        line: Option<u64>,
    }
}
