//! Why a pickle could not be read: where in the file, at which instruction, what was expected.

use crate::pickle::opcode;

/// A pickle that was not read to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The input ends inside an instruction or before the length a frame announces.
    #[error("`{opcode}` at byte {at} needs {missing} more bytes than the file has")]
    Truncated {
        /// Position of the instruction, bytes from the start of the file.
        at: u64,
        /// Name of the instruction.
        opcode: &'static str,
        /// Bytes that are not there.
        missing: u64,
    },
    /// The input ends between two instructions.
    #[error("the file ends at byte {at} before the end of its pickle (`STOP`)")]
    NoStop {
        /// Length of the input, bytes.
        at: u64,
    },
    /// A byte that is no instruction of any protocol.
    #[error("byte {at} is {byte:#04x}, which is not a pickle instruction")]
    UnknownOpcode {
        /// Position of the byte from the start of the file.
        at: u64,
        byte: u8,
    },
    /// An instruction that would import or call something, or that needs data from elsewhere.
    #[error("refused `{opcode}` at byte {at}: it asks to {asks}")]
    Refused {
        /// Position of the instruction, bytes from the start of the file.
        at: u64,
        /// Name of the instruction.
        opcode: &'static str,
        /// What the instruction would have done.
        asks: String,
    },
    /// An instruction whose operands are not what it needs.
    #[error("`{opcode}` at byte {at} expected {expected}")]
    Malformed {
        /// Position of the instruction, bytes from the start of the file.
        at: u64,
        /// Name of the instruction.
        opcode: &'static str,
        /// What the instruction needs.
        expected: &'static str,
    },
    /// A number, string or count beyond what this reader holds.
    #[error("`{opcode}` at byte {at}: {what}")]
    TooLarge {
        /// Position of the instruction, bytes from the start of the file.
        at: u64,
        /// Name of the instruction.
        opcode: &'static str,
        /// What is too large, and the limit.
        what: &'static str,
    },
}

/// An error before its place is known: the machine adds position and instruction.
#[derive(Debug)]
pub(super) enum Fault {
    /// So many bytes are not there.
    Truncated(u64),
    /// Not an instruction.
    Unknown,
    /// What was asked.
    Refused(Box<str>),
    /// What was expected.
    Malformed(&'static str),
    /// What is too large.
    TooLarge(&'static str),
}

impl Fault {
    /// The error at the instruction `byte`, which stands at `at`.
    #[cold]
    pub(super) fn at(self, at: u64, byte: u8) -> Error {
        let Some(opcode) = opcode::name(byte) else { return Error::UnknownOpcode { at, byte } };
        match self {
            Fault::Truncated(missing) => Error::Truncated { at, opcode, missing },
            Fault::Unknown => Error::UnknownOpcode { at, byte },
            Fault::Refused(asks) => Error::Refused { at, opcode, asks: asks.into() },
            Fault::Malformed(expected) => Error::Malformed { at, opcode, expected },
            Fault::TooLarge(what) => Error::TooLarge { at, opcode, what },
        }
    }
}
