//! Maps by numbers and addresses. They are ours, not an attacker's, so a quick hash does.

pub use rustc_hash::{FxHashMap as Map, FxHashSet as Set};
