//! A report's JSON as one side of a comparison. It was written elsewhere and is not believed: sizes must be
//! sizes, and no dimension may hold more than the peak.

use diff::{Cause, Line, Module, Phase, Side, Tensor, Totals};
use serde::Deserialize;

use crate::json::LARGEST;

/// More than any card has: sums of such sizes stay far from the end of 64 bits.
const LARGEST_SIZE: u64 = 1 << 50;

/// What is read of `fathom.report/1` and `fathom.explain/1`; everything else is passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Report {
    software: Option<Software>,
    torch: Option<String>,
    gpu: Option<Gpu>,
    peak: Option<Peak>,
    floor_bytes: Option<u64>,
    categories: Vec<Named>,
    modules: Vec<ModuleRow>,
    operators: Vec<Named>,
    lines: Vec<LineRow>,
    tensors: Vec<TensorRow>,
    phases: Vec<PhaseRow>,
    findings: Vec<Finding>,
    out_of_memory: Option<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Software {
    torch: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Gpu {
    title: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Peak {
    allocated_bytes: u64,
    requested_bytes: u64,
    reserved_bytes: u64,
    device_bytes: Option<u64>,
    phase: Option<String>,
    step: Option<u64>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    bytes: u64,
}

#[derive(Deserialize)]
struct ModuleRow {
    path: String,
    #[serde(default)]
    class: String,
    bytes: u64,
    own_bytes: u64,
}

#[derive(Deserialize)]
struct LineRow {
    file: Option<String>,
    line: Option<u32>,
    function: Option<String>,
    source: Option<String>,
    bytes: u64,
    #[serde(default)]
    count: u64,
}

#[derive(Deserialize)]
struct TensorRow {
    bytes: u64,
    block_bytes: Option<u64>,
    shape: Option<Vec<u64>>,
    dtype: Option<String>,
    #[serde(default)]
    category: String,
    name: Option<String>,
    module: Option<String>,
    operator: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

#[derive(Deserialize)]
struct PhaseRow {
    name: String,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
}

#[derive(Deserialize)]
struct Finding {
    id: String,
    title: String,
    bytes: u64,
}

/// The side that a report tells of; an error in words if it tells nothing or nonsense. The name is for
/// the caller to add.
pub fn read(report: serde_json::Value) -> Result<Side, String> {
    let report: Report = serde_json::from_value(report).map_err(|error| error.to_string())?;
    let peak = report.peak.as_ref().ok_or("it has no peak: the script did not use the GPU")?;
    let totals = Totals {
        allocated: peak.allocated_bytes,
        requested: peak.requested_bytes,
        reserved: peak.reserved_bytes,
        device: peak.device_bytes,
        floor: report.floor_bytes,
    };
    let side = Side {
        torch: report.software.map(|software| software.torch).or(report.torch).unwrap_or_default(),
        card: report.gpu.map(|gpu| gpu.title).unwrap_or_default(),
        when: diff::side::when(peak.phase.as_deref(), peak.step.unwrap_or(0)),
        ran_out: report.out_of_memory.is_some(),
        totals,
        unlisted_below: unlisted_below(&report.tensors),
        categories: report.categories.into_iter().map(|row| (row.name, row.bytes)).collect(),
        modules: report.modules.into_iter().map(module).collect(),
        operators: report.operators.into_iter().map(|row| (row.name, row.bytes)).collect(),
        lines: report.lines.into_iter().map(line).collect(),
        tensors: report.tensors.into_iter().map(tensor).collect(),
        phases: report.phases.into_iter().map(phase).collect(),
        findings: report.findings.into_iter().map(cause).collect(),
        ..Side::default()
    };
    check(&side)?;
    Ok(side)
}

/// Sizes are sizes, and no dimension says more than the peak.
fn check(side: &Side) -> Result<(), String> {
    let whole = side.totals.allocated;
    let of_phases = side.phases.iter().flat_map(|row| [row.allocated, row.reserved]);
    let others = [whole, side.totals.requested, side.totals.reserved];
    let others = others.into_iter().chain(side.totals.device).chain(side.totals.floor);
    let others = others.chain(of_phases).chain(side.findings.iter().map(|row| row.bytes));
    let others = others.chain(side.modules.iter().map(|row| row.total));
    if let Some(size) = others.into_iter().find(|size| LARGEST_SIZE < *size) {
        return Err(format!("{size} bytes are no size of memory"));
    }
    let dimensions: [(&str, Vec<u64>); 5] = [
        ("categories", side.categories.iter().map(|row| row.1).collect()),
        ("modules", side.modules.iter().map(|row| row.own).collect()),
        ("operators", side.operators.iter().map(|row| row.1).collect()),
        ("lines", side.lines.iter().map(|row| row.bytes).collect()),
        ("tensors", side.tensors.iter().map(|row| row.bytes).collect()),
    ];
    for (name, sizes) in dimensions {
        let sum = sizes.iter().fold(0u64, |sum, size| sum.saturating_add(*size));
        if whole < sum {
            return Err(format!("its {name} sum to {sum} bytes, its peak is {whole}"));
        }
    }
    Ok(())
}

/// A full list may have been cut: others may be as large as the smallest of it.
fn unlisted_below(tensors: &[TensorRow]) -> Option<u64> {
    if tensors.len() < LARGEST {
        return None;
    }
    tensors.iter().map(|row| row.block_bytes.unwrap_or(row.bytes)).min()
}

fn module(row: ModuleRow) -> Module {
    Module { path: row.path, class: row.class, own: row.own_bytes, total: row.bytes }
}

fn line(row: LineRow) -> Line {
    Line {
        file: row.file.unwrap_or_default(),
        line: row.line.unwrap_or_default(),
        function: row.function.unwrap_or_default(),
        source: row.source.unwrap_or_default(),
        bytes: row.bytes,
        count: row.count,
        library: Vec::new(),
    }
}

fn tensor(row: TensorRow) -> Tensor {
    Tensor {
        bytes: row.block_bytes.unwrap_or(row.bytes),
        category: row.category,
        dtype: row.dtype.unwrap_or_default(),
        shape: row.shape.unwrap_or_default(),
        name: row.name.unwrap_or_default(),
        module: row.module.unwrap_or_default(),
        operator: row.operator.unwrap_or_default(),
        file: row.file.unwrap_or_default(),
        line: row.line.unwrap_or_default(),
    }
}

fn phase(row: PhaseRow) -> Phase {
    Phase { name: row.name, allocated: row.peak_allocated_bytes, reserved: row.peak_reserved_bytes }
}

fn cause(row: Finding) -> Cause {
    Cause { id: row.id, title: row.title, bytes: row.bytes }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nonsense_is_refused_in_words() {
        let error = |value: serde_json::Value| read(value).unwrap_err();
        assert!(error(json!({})).contains("no peak"));
        let peak = json!({ "allocated_bytes": 10, "reserved_bytes": 20 });
        let more = json!({ "peak": peak, "categories": [{ "name": "weights", "bytes": 11 }] });
        assert_eq!(error(more), "its categories sum to 11 bytes, its peak is 10");
        let huge = json!({ "peak": { "allocated_bytes": u64::MAX } });
        assert!(error(huge).contains("no size of memory"));
        assert!(error(json!({ "peak": 3 })).contains("invalid type"));
    }

    #[test]
    fn what_a_report_says_is_read() {
        let report = json!({
            "peak": { "allocated_bytes": 512, "reserved_bytes": 1024, "device_bytes": 2048 },
            "software": { "torch": "2.15.0" }, "floor_bytes": 1536,
            "tensors": [{ "bytes": 500, "block_bytes": 512, "dtype": "float32", "shape": [125] }],
        });
        let side = read(report).unwrap();
        assert_eq!((side.totals.device, side.totals.floor), (Some(2048), Some(1536)));
        assert_eq!((side.tensors[0].bytes, side.unlisted_below), (512, None));
        assert_eq!(side.torch, "2.15.0");
    }
}
