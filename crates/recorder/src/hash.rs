//! Maps by numbers and addresses.

pub(crate) use notes::{Map, Set};
