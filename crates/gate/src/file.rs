//! `fathom.baseline/1`: fields are only ever added. A file from outside is not trusted.

use serde::{Deserialize, Serialize};

use anatomy::Peaks;

use crate::baseline::{Baseline, BaselineCard, Module};

/// The name of the form.
pub const SCHEMA: &str = "fathom.baseline/1";

/// At most this many modules are written, the largest; the others are summed up.
pub const LISTED: usize = 24;

/// Why a text is no baseline.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not JSON, or fields are missing.
    #[error("{0}")]
    Form(String),
    /// JSON of another kind.
    #[error("its schema is `{0}`, not `{SCHEMA}`")]
    Schema(String),
    /// A name that would change what a terminal shows.
    #[error("a name in it has control characters")]
    Name,
}

#[derive(Deserialize)]
struct File {
    gpu: Option<Gpu>,
    torch: String,
    cudnn: String,
    workspaces: String,
    steps: u64,
    peak: Peak,
    categories: Vec<Category>,
    modules: Vec<Kind>,
    unlisted_modules_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Gpu {
    name: String,
    memory_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Peak {
    allocated_bytes: u64,
    reserved_bytes: u64,
    device_bytes: u64,
    /// Not in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    need_bytes: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Category {
    name: String,
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Kind {
    path: String,
    class: String,
    bytes: u64,
}

/// The text of a baseline, with a line break at the end.
pub fn write(baseline: &Baseline) -> String {
    let mut sizes: Vec<u64> = baseline.modules.iter().map(|module| module.bytes).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    // Of equal ones at the end of the list all are left out: which are listed must not depend on order.
    let least = sizes.get(LISTED).map_or(0, |size| size + 1);
    let (listed, rest): (Vec<&Module>, Vec<&Module>) =
        baseline.modules.iter().partition(|module| least <= module.bytes);
    let unlisted: u64 = rest.iter().map(|module| module.bytes).sum();
    let gpu =
        |card: &BaselineCard| Gpu { name: card.name.clone(), memory_bytes: card.memory_bytes };
    let kind = |module: &&Module| Kind {
        path: module.path.clone(),
        class: module.class.clone(),
        bytes: module.bytes,
    };
    let category = |(name, bytes): &(String, u64)| Category { name: name.clone(), bytes: *bytes };
    let peak = Peak {
        allocated_bytes: baseline.peaks.allocated,
        reserved_bytes: baseline.peaks.reserved,
        device_bytes: baseline.peaks.device,
        need_bytes: baseline.need,
    };
    let fields = [
        ("schema", json(SCHEMA)),
        ("gpu", json(&baseline.card.as_ref().map(gpu))),
        ("torch", json(&baseline.torch)),
        ("cudnn", json(&baseline.cudnn)),
        ("workspaces", json(&baseline.workspaces)),
        ("steps", json(&baseline.steps)),
        ("peak", json(&peak)),
        ("categories", rows(baseline.categories.iter().map(category))),
        ("modules", rows(listed.iter().map(kind))),
        ("unlisted_modules_bytes", json(&baseline.unlisted_bytes.saturating_add(unlisted))),
    ];
    let fields = fields.map(|(name, value)| format!("\n  \"{name}\": {value}"));
    format!("{{{}\n}}\n", fields.join(","))
}

fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data serialises")
}

/// One line for each row: a diff shows what changed, and no more.
fn rows<T: Serialize>(list: impl Iterator<Item = T>) -> String {
    let rows: Vec<String> = list.map(|row| format!("\n    {}", json(&row))).collect();
    if rows.is_empty() { "[]".to_owned() } else { format!("[{}\n  ]", rows.join(",")) }
}

/// Reads what [`write`] wrote.
pub fn read(text: &str) -> Result<Baseline, Error> {
    let form = |error: serde_json::Error| Error::Form(error.to_string());
    let value: serde_json::Value = serde_json::from_str(text).map_err(form)?;
    match value.get("schema").and_then(serde_json::Value::as_str) {
        Some(SCHEMA) => {}
        Some(other) => {
            return Err(Error::Schema(
                other.chars().filter(|c| !c.is_control()).take(60).collect(),
            ));
        }
        None => return Err(Error::Form("it has no `schema`".to_owned())),
    }
    let file: File = serde_json::from_value(value).map_err(form)?;
    let baseline = Baseline {
        card: file.gpu.map(|gpu| BaselineCard { name: gpu.name, memory_bytes: gpu.memory_bytes }),
        torch: file.torch,
        cudnn: file.cudnn,
        workspaces: file.workspaces,
        steps: file.steps,
        peaks: Peaks {
            allocated: file.peak.allocated_bytes,
            reserved: file.peak.reserved_bytes,
            device: file.peak.device_bytes,
        },
        need: file.peak.need_bytes,
        categories: file.categories.into_iter().map(|row| (row.name, row.bytes)).collect(),
        modules: file
            .modules
            .into_iter()
            .map(|row| Module { path: row.path, class: row.class, bytes: row.bytes })
            .collect(),
        unlisted_bytes: file.unlisted_modules_bytes,
    };
    if names(&baseline).any(|name| name.chars().any(char::is_control)) {
        return Err(Error::Name);
    }
    Ok(baseline)
}

fn names(baseline: &Baseline) -> impl Iterator<Item = &str> {
    let software = [&baseline.torch, &baseline.cudnn, &baseline.workspaces];
    let modules = baseline.modules.iter().flat_map(|row| [&row.path, &row.class]);
    let card = baseline.card.iter().map(|card| &card.name);
    let categories = baseline.categories.iter().map(|row| &row.0);
    software.into_iter().chain(modules).chain(card).chain(categories).map(String::as_str)
}
