//! The file form: compact, versioned, and written while the script runs.
//!
//! All numbers are little endian.
//!
//! ```text
//! 16 bytes  `fathom-recording`
//! u32       version, 1
//! chunks    4 bytes tag, u32 length, u32 CRC-32 of tag and payload, payload
//! ```
//!
//! | tag | payload |
//! | --- | --- |
//! | `ABOU` | a JSON object with facts of the run; a later one overrides key by key |
//! | `TEXT` | u32 length, UTF-8; numbered from 1, number 0 is the empty text |
//! | `FRAM` | file text, function text, line: u32 each |
//! | `SRCE` | frame, text of its source line: u32 each; frames of libraries have none |
//! | `STAC` | frame, caller + 1 or 0: u32 each; a caller comes before |
//! | `OWNR` | module text, operator text, node text, stack + 1 or 0: u32 each; row 0 is nobody |
//! | `MODU` | path text, class text: u32 each |
//! | `PLAC` | u64 stream, u32 and u32 pool: where blocks and segments are |
//! | `STRT`, `EVNT` | events of 24 bytes, see `events.rs`: the state before, and what happened |
//! | `FINI` | segments and blocks after the last event, see `finish.rs` |
//! | `DONE` | empty: the recording was brought to its end |
//!
//! Rows are numbered from 0 on over all chunks of a tag, and come before whatever refers to them. So
//! a file that ends in the middle, because its process was killed, holds all that its whole chunks
//! say. Unknown tags are passed over; everything else that is not as above is an [`Error`].

mod about;
mod chunk;
mod error;
mod events;
mod finish;
mod pieces;
mod read;
mod write;

pub use error::Error;
pub use pieces::Writer;
pub use read::read;
pub use write::write;

/// What a file begins with.
pub const MAGIC: &[u8; 16] = b"fathom-recording";

/// The form that is written, and the newest that is read.
pub const VERSION: u32 = 1;
