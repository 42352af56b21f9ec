//! What is known of the values on the card.
//!
//! Kernels do not run on the phantom, but what they would compute can be had: a function leaves a *recipe* for its
//! results, and whoever must know a value has the recipes behind it carried out by PyTorch's CPU kernels. Nothing is
//! computed before somebody asks. A storage without a value here is unknown: that is the only thing that may stand for
//! knowledge, not zeros, and not what lies at an address.

mod arguments;
mod bounds;
mod cost;
mod evaluation;
mod flats;
mod geometry;
mod ledger;
mod methods;
mod notes;
mod plan;
mod reads;
mod recipe;
mod storages;
mod value;

pub(crate) use ledger::Ledger;
pub(crate) use notes::Call;
pub(crate) use reads::unread;
