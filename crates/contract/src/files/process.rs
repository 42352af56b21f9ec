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
        /// The cards that it used.
        devices: Vec<Device>,
        /// The last requests that PyTorch's allocator could not meet.
        refusals: Vec<Refusal>,
        /// How many there were in all.
        refusal_count: u64,
        /// What the script decided by values that are not known.
        decisions: Vec<Decided>,
        /// Errors of ours, which the script did not see.
        faults: Vec<Fault>,
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
