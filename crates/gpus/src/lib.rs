//! The catalogue of cards: what their driver reports, each number with its source.
//!
//! The numbers live in text tables beside the manifest: `cards.txt`, `architectures.txt`, `beside.txt`
//! (what a card shows beside PyTorch's memory) and `sources.txt`. They are part of the binary and are read on first use; nothing else happens at
//! run time, because this crate is linked into a library that is loaded into strangers' processes.
//!
//! ```
//! let card = gpus::find("RTX 3090").expect("in the catalogue");
//! assert_eq!(card.name, "rtx3090");
//! assert_eq!(card.architecture().threads_per_multiprocessor, 1536);
//! ```

mod architecture;
mod beside;
mod card;
mod find;
mod kernels;
mod page;
mod table;

pub use architecture::{Architecture, architectures};
pub use beside::{ContextRange, Counted, Loading, Measured, measurements};
pub use card::{Card, Source, UNLIMITED_BYTES};
pub use find::{NotFound, find};
pub use kernels::has_kernels;
pub use page::markdown;

/// Every card, in the order of the table: by product line, then by age and size.
pub fn cards() -> &'static [Card] {
    table::cards()
}

/// The architecture of a run for which no card was chosen: compute capability 8.0, as the A100 has.
pub fn default_architecture() -> &'static Architecture {
    unlimited_model().architecture()
}

/// The card of a run for which none was chosen: an A100 with more memory than any process asks for.
///
/// Scripts that look at the device's name or properties see an A100. [`Card::is_unlimited`] tells
/// it from a chosen card.
pub fn unlimited() -> Card {
    const REASON: &str = "no card was chosen: 16 TiB, more than any process asks for";
    Card {
        name: card::NAMELESS,
        memory_bytes: UNLIMITED_BYTES,
        memory_known: Source::Assumed(REASON),
        ..unlimited_model().clone()
    }
}

/// The card whose properties stand in when none was chosen.
fn unlimited_model() -> &'static Card {
    find("a100-80g").expect("the catalogue has the A100")
}
