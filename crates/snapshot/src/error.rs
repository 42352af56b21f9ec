//! Why bytes are not a snapshot, and what to do about it.

use crate::pickle;

/// Bytes that could not be read as a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a pickle at all, by its first bytes.
    #[error("not a memory snapshot: this is {0}")]
    NotPickle(Lookalike),
    /// The pickle is damaged or refused.
    #[error(transparent)]
    Pickle(#[from] pickle::Error),
    /// A sound pickle of something else.
    #[error("not a memory snapshot: the pickle holds {found}")]
    NotSnapshot {
        /// What the pickle holds.
        found: String,
    },
    /// A snapshot in which a value is not what it must be.
    #[error("`{place}` in the snapshot must be {expected}, found {found}")]
    Field {
        /// Path of the value, such as `device_traces[0][17].addr`.
        place: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// More entries than the file has values.
    #[error("the snapshot lists the same objects again and again")]
    Amplified,
}

/// What people pass instead of a snapshot, told by the first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookalike {
    Empty,
    /// A zip archive, such as `torch.save` writes.
    Zip,
    /// A gzip stream.
    Gzip,
    /// An HTML page.
    Html,
    Json,
    /// A Git LFS pointer.
    GitLfs,
}

impl std::fmt::Display for Lookalike {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Lookalike::Empty => "an empty file",
            Lookalike::Zip => "a zip archive",
            Lookalike::Gzip => "a gzip stream",
            Lookalike::Html => "an HTML page",
            Lookalike::Json => "JSON",
            Lookalike::GitLfs => "a Git LFS pointer",
        })
    }
}

impl Lookalike {
    /// Whether the bytes are something else that people mistake for a snapshot.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        // A pickle of protocol 2 or newer starts with 0x80. Older ones may start like text, so
        // that only openings are named here that cannot be read as pickle instructions.
        Some(match bytes {
            [] => Lookalike::Empty,
            [b'P', b'K', 3, 4, ..] => Lookalike::Zip,
            [0x1f, 0x8b, ..] => Lookalike::Gzip,
            [b'<', ..] => Lookalike::Html,
            [b'{', ..] => Lookalike::Json,
            _ if bytes.starts_with(b"version https://git-lfs") => Lookalike::GitLfs,
            _ => return None,
        })
    }
}

impl Error {
    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::NotPickle(Lookalike::Empty) => {
                "the file was probably being written when the process ended; take the snapshot again"
            }
            Error::NotPickle(Lookalike::Zip) => {
                "this looks like a checkpoint of `torch.save`; write a snapshot with \
                 `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")`"
            }
            Error::NotPickle(Lookalike::Gzip) => "decompress it first: `gunzip`",
            Error::NotPickle(Lookalike::GitLfs) => "fetch the file itself: `git lfs pull`",
            Error::NotPickle(Lookalike::Html | Lookalike::Json) | Error::NotSnapshot { .. } => {
                "write a snapshot with `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")`"
            }
            Error::Pickle(pickle::Error::Truncated { .. } | pickle::Error::NoStop { .. }) => {
                "the file is cut off; copy it again, or take the snapshot again"
            }
            Error::Pickle(pickle::Error::Refused { .. }) => {
                "a memory snapshot never imports or calls anything; do not open this file with \
                 Python's pickle"
            }
            Error::Pickle(_) => "the file is damaged or is not a pickle; copy it again",
            Error::Field { .. } | Error::Amplified => {
                "the file was changed or written by an unknown tool; take the snapshot again"
            }
        }
    }
}
