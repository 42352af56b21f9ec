//! The versioned mirror of a comparison with a baseline.

use gate::{Change, Comparison, Kind};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Against<'a> {
    file: &'a str,
    margin: String,
    /// `same`, `grew` or `shrank`, beyond the margin.
    change: &'static str,
    allocated: Bytes,
    reserved: Bytes,
    device: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    need: Option<Bytes>,
    categories: Vec<Category<'a>>,
    modules: Vec<Module<'a>>,
    remarks: &'a [String],
}

#[derive(Serialize)]
struct Bytes {
    before_bytes: u64,
    after_bytes: u64,
}

#[derive(Serialize)]
struct Category<'a> {
    name: &'a str,
    #[serde(flatten)]
    bytes: Bytes,
}

#[derive(Serialize)]
struct Module<'a> {
    path: &'a str,
    class: &'a str,
    /// Null: too small to be in the baseline.
    before_bytes: Option<u64>,
    after_bytes: u64,
}

impl<'a> Against<'a> {
    pub(super) fn of(against: &'a study::Against) -> Against<'a> {
        let study::Against { file, comparison } = against;
        let Comparison {
            kind,
            margin,
            allocated,
            reserved,
            device,
            need,
            categories,
            modules,
            remarks,
        } = comparison;
        let module = |row: &'a gate::ModuleChange| Module {
            path: &row.path,
            class: &row.class,
            before_bytes: row.before,
            after_bytes: row.after,
        };
        Against {
            file,
            margin: margin.to_string(),
            change: match kind {
                Kind::Same => "same",
                Kind::Grew => "grew",
                Kind::Shrank => "shrank",
            },
            allocated: bytes(*allocated),
            reserved: bytes(*reserved),
            device: bytes(*device),
            need: need.map(bytes),
            categories: categories
                .iter()
                .map(|(name, change)| Category { name, bytes: bytes(*change) })
                .collect(),
            modules: modules.iter().map(module).collect(),
            remarks,
        }
    }
}

fn bytes(change: Change) -> Bytes {
    Bytes { before_bytes: change.before, after_bytes: change.after }
}
