//! What is known of the values on the card.
//!
//! Kernels do not run on the phantom, but what they would compute can be had: a function leaves a *recipe* for its
//! results, and whoever must know a value has the recipes behind it carried out by PyTorch's CPU kernels. Nothing is
//! computed before somebody asks. A storage without a value here is unknown: that is the only thing that may stand for
//! knowledge, not zeros, and not what lies at an address.

mod arguments;
mod bounds;
mod call;
mod cost;
mod counters;
mod evaluation;
mod flats;
mod geometry;
mod given;
mod ledger;
mod methods;

mod plan;
mod reads;
mod recipe;
mod results;
mod storages;
mod value;
mod written_down;

pub(crate) use call::Call;
pub(crate) use ledger::Ledger;
pub(crate) use reads::unread;
