//! What is wrong with a file, and where.

use super::VERSION;

/// A file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Something else, or not even a header.
    #[error("not a recording: it does not begin with `fathom-recording` and a version")]
    NotARecording,
    /// Written by a later Fathom.
    #[error(
        "version {found} of the form, and this Fathom reads up to {VERSION}: a newer one is needed"
    )]
    NewerVersion {
        /// The file's version.
        found: u32,
    },
    /// Bytes changed after they were written.
    #[error("byte {offset}: chunk `{tag}` is damaged, its checksum is not that of its bytes")]
    Damaged {
        /// Where the chunk begins.
        offset: u64,
        tag: String,
    },
    /// A whole chunk that says what cannot be.
    #[error("byte {offset}: chunk `{tag}`: {why}")]
    Wrong {
        offset: u64,
        /// In which chunk.
        tag: String,
        /// What was found, and what could be there.
        why: String,
    },
}
