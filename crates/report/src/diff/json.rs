//! `fathom.diff/1`: fields are only ever added.

use diff::{Change, Difference, Given, Place};
use serde::Serialize;

use super::sentences;
use crate::json::known;

#[derive(Serialize)]
struct Mirror<'a> {
    schema: &'static str,
    /// In one sentence.
    answer: String,
    a: SideMirror<'a>,
    b: SideMirror<'a>,
    /// Of the allocated peak; the rows of every dimension below sum to it.
    peak_delta_bytes: i64,
    reserved_delta_bytes: i64,
    device_delta_bytes: Option<i64>,
    floor_delta_bytes: Option<i64>,
    categories: Vec<Row<'a>>,
    modules: Vec<ModuleMirror<'a>>,
    operators: Vec<Row<'a>>,
    lines: Vec<LineMirror<'a>>,
    tensors: Vec<TensorMirror<'a>>,
    phases: Vec<PhaseMirror<'a>>,
    findings: Vec<FindingMirror<'a>>,
    renamed: &'a [String],
    notes: &'a [String],
}

#[derive(Serialize)]
struct SideMirror<'a> {
    name: &'a str,
    torch: Option<&'a str>,
    gpu: Option<&'a str>,
    /// When its allocated peak was.
    when: Option<&'a str>,
    allocated_bytes: u64,
    requested_bytes: u64,
    reserved_bytes: u64,
    device_bytes: Option<u64>,
    floor_bytes: Option<u64>,
    out_of_memory: bool,
}

/// Bytes before and after; `status` is new, gone, grown, shrunk or same.
#[derive(Serialize)]
struct Bytes {
    a_bytes: u64,
    b_bytes: u64,
    delta_bytes: i64,
    status: &'static str,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    #[serde(flatten)]
    bytes: Bytes,
}

/// Own bytes, which sum up; totals are with the modules below.
#[derive(Serialize)]
struct ModuleMirror<'a> {
    path: &'a str,
    class: &'a str,
    /// The path in A, if it was another.
    was: Option<&'a str>,
    #[serde(flatten)]
    own: Bytes,
    a_total_bytes: u64,
    b_total_bytes: u64,
}

#[derive(Serialize)]
struct PlaceMirror<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
}

#[derive(Serialize)]
struct LineMirror<'a> {
    #[serde(flatten)]
    place: PlaceMirror<'a>,
    source: Option<&'a str>,
    was: Option<PlaceMirror<'a>>,
    #[serde(flatten)]
    bytes: Bytes,
    a_count: u64,
    b_count: u64,
}

#[derive(Serialize)]
struct TensorMirror<'a> {
    /// Null in the row of what a report does not list.
    category: Option<&'a str>,
    what: Option<&'a str>,
    /// Dtype and shape in A, if they were others.
    was: Option<&'a str>,
    name: Option<&'a str>,
    module: Option<&'a str>,
    operator: Option<&'a str>,
    #[serde(flatten)]
    place: PlaceMirror<'a>,
    source: Option<&'a str>,
    #[serde(flatten)]
    bytes: Bytes,
    a_count: u64,
    b_count: u64,
}

#[derive(Serialize)]
struct PhaseMirror<'a> {
    name: &'a str,
    #[serde(flatten)]
    allocated: Bytes,
    a_reserved_bytes: u64,
    b_reserved_bytes: u64,
}

#[derive(Serialize)]
struct FindingMirror<'a> {
    id: &'a str,
    title: &'a str,
    #[serde(flatten)]
    bytes: Bytes,
}

/// The difference as JSON, with a line break at the end.
pub fn json(difference: &Difference) -> String {
    let mirror = Mirror {
        schema: "fathom.diff/1",
        answer: sentences::answer(difference),
        a: side(&difference.a),
        b: side(&difference.b),
        peak_delta_bytes: difference.allocated.delta(),
        reserved_delta_bytes: difference.reserved.delta(),
        device_delta_bytes: difference.device.map(Change::delta),
        floor_delta_bytes: difference.floor.map(Change::delta),
        categories: named(&difference.categories),
        modules: modules(difference),
        operators: named(&difference.operators),
        lines: lines(difference),
        tensors: tensors(difference),
        phases: phases(difference),
        findings: findings(difference),
        renamed: &difference.renamed,
        notes: &difference.notes,
    };
    let mut text = serde_json::to_string_pretty(&mirror).expect("plain data serialises");
    text.push('\n');
    text
}

fn side(side: &Given) -> SideMirror<'_> {
    SideMirror {
        name: &side.name,
        torch: known(&side.torch),
        gpu: known(&side.card),
        when: known(&side.when),
        allocated_bytes: side.totals.allocated,
        requested_bytes: side.totals.requested,
        reserved_bytes: side.totals.reserved,
        device_bytes: side.totals.device,
        floor_bytes: side.totals.floor,
        out_of_memory: side.ran_out,
    }
}

fn bytes(change: Change) -> Bytes {
    Bytes {
        a_bytes: change.a,
        b_bytes: change.b,
        delta_bytes: change.delta(),
        status: change.status().name(),
    }
}

fn named(rows: &[diff::Named]) -> Vec<Row<'_>> {
    rows.iter().map(|row| Row { name: &row.name, bytes: bytes(row.bytes) }).collect()
}

fn modules(difference: &Difference) -> Vec<ModuleMirror<'_>> {
    let rows = difference.modules.iter().map(|row| ModuleMirror {
        path: &row.path,
        class: &row.class,
        was: row.was.as_deref(),
        own: bytes(row.own),
        a_total_bytes: row.total.a,
        b_total_bytes: row.total.b,
    });
    rows.collect()
}

fn place(place: &Place) -> PlaceMirror<'_> {
    let file = known(&place.file);
    PlaceMirror { file, line: file.map(|_| place.line), function: known(&place.function) }
}

fn lines(difference: &Difference) -> Vec<LineMirror<'_>> {
    let rows = difference.lines.iter().map(|row| LineMirror {
        place: place(&row.place),
        source: known(&row.source),
        was: row.was.as_ref().map(place),
        bytes: bytes(row.bytes),
        a_count: row.count.a,
        b_count: row.count.b,
    });
    rows.collect()
}

fn tensors(difference: &Difference) -> Vec<TensorMirror<'_>> {
    let rows = difference.tensors.iter().map(|row| TensorMirror {
        category: known(&row.category),
        what: known(&row.what),
        was: row.was.as_deref(),
        name: known(&row.name),
        module: known(&row.module),
        operator: known(&row.operator),
        place: place(&row.place),
        source: known(&row.source),
        bytes: bytes(row.bytes),
        a_count: row.count.a,
        b_count: row.count.b,
    });
    rows.collect()
}

fn phases(difference: &Difference) -> Vec<PhaseMirror<'_>> {
    let rows = difference.phases.iter().map(|row| PhaseMirror {
        name: &row.name,
        allocated: bytes(row.allocated),
        a_reserved_bytes: row.reserved.a,
        b_reserved_bytes: row.reserved.b,
    });
    rows.collect()
}

fn findings(difference: &Difference) -> Vec<FindingMirror<'_>> {
    let rows = difference.findings.iter().map(|row| FindingMirror {
        id: &row.id,
        title: &row.title,
        bytes: bytes(row.bytes),
    });
    rows.collect()
}
