//! Out-of-memory messages and memory tables, read from any text, and what follows from their numbers.
//!
//! ```text
//! text ──read──▶ Account ──weigh──▶ Balance ──advise──▶ Advice
//!                   └──solve, refute──▶ Candidate, Refutation      figures ──reconcile──▶ Ledger
//! ```
//!
//! [`read`] finds every message and table of a log, whoever wrapped it. [`weigh`] makes the ledger of
//! one: what was free, and whose the rest was. [`advise`] says which advice of the message can help.
//! [`solve()`] looks for shapes of the size that was tried, [`refute`] tests a shape that was claimed,
//! and [`reconcile()`] explains why two tools show two numbers.
//!
//! Who writes which message is a table of [`families`], a file each; [`traceback`] finds the line that asked.
//!
//! Texts round: a number is an [`Amount`], the bytes it can stand for. Whatever is said of it holds for
//! all of them, or is said to be open.

// A text may come from anyone: nothing in it may make this panic.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

pub mod account;
pub mod advice;
pub mod amount;
pub mod balance;
pub mod cause;
mod clean;
mod facts;
pub mod families;
pub mod guess;
mod message;
mod missing;
pub mod page;
mod read;
pub mod reconcile;
pub mod request;
pub mod shape;
mod smi;
pub mod solve;
mod summary;
pub mod traceback;

pub use account::{Account, Count, Figures, Kind, Process, Tensor};
pub use advice::{Advice, Helps, advise};
pub use amount::Amount;
pub use balance::{Balance, Cause, Ledger, Row, weigh};
pub use facts::facts;
pub use families::{Family, Memory};
pub use guess::guess;
pub use read::read;
pub use reconcile::{Reconciling, reconcile};
pub use recording::Known;
pub use request::requests;
pub use shape::{DTYPES, Dtype, Refutation, Shape, refute};
pub use solve::{Candidate, Dim, Solution, solve};
pub use traceback::{Frame, Traceback};
