//! What the recorder notes of a script while it runs, and the file that is made of it.
//!
//! ```text
//! part begins ──▶ Parts: serial number ─────────────┐
//! something is said of an address ──▶ Notes ────────┤
//! PyTorch's history: events with serial numbers ────┴──▶ CardWriter ──▶ recording
//! ```
//!
//! Everything here is numbers, addresses and texts. There is no Python in this crate, and it does not depend on
//! PyO3: whoever locks [`State`] and calls only what is here cannot be led back into Python while it is locked.

mod card_writer;
pub mod deferred;
mod hash;
pub mod local;
pub mod metadata;
pub mod note;
pub mod parts;
pub mod paths;
pub mod saved;
pub mod stacks;
mod state;
pub mod text_table;
mod work_areas;

pub use card_writer::{Batch, CardWriter, Entry, Frame, Made, NewOwner, Outside, Wanted};
pub use hash::{Map, Set};
pub use state::{Area, Casts, Function, State};
pub use work_areas::{WorkArea, WorkAreas};
