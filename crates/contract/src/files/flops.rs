//! `flops.<pid>.json`: how much a forward pass computes.

use std::collections::BTreeMap;

use super::File;
use super::shape::records;

impl File for Flops {
    const KIND: &'static str = "flops";
    const TELLS: &'static str = "what each module computes, by which checkpoints are planned";
}

records! {
    /// Counts of one process.
    Flops {
        /// Operations by module, without those of modules inside of it.
        flops: BTreeMap<String, u64>,
        /// Modules that change their arguments.
        changing: Vec<String>,
    }
}
