//! The versioned mirror of an anatomy: who holds what, in JSON.

use anatomy::{Anatomy, AreaBytes, Dissection, Known, Origin};
use serde::Serialize;

/// How many of the tensors at a moment are listed, and in full in the terminal.
pub(crate) const LARGEST: usize = 50;

/// The part of a report that comes from a recording; empty lists where there was none.
#[derive(Default, Serialize)]
pub(crate) struct Body<'a> {
    parameters: Option<Parameters>,
    categories: Vec<Category>,
    modules: Vec<Module<'a>>,
    lines: Vec<Line<'a>>,
    operators: Vec<Operator<'a>>,
    /// What belongs to methods of distributed training.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    areas: Vec<Area<'a>>,
    tensors: Vec<Tensor<'a>>,
    phases: Vec<Phase>,
    born: Vec<Born>,
    first_step: Option<Step>,
    steady_step: Option<Step>,
    saved: Option<Saved>,
    growth_bytes_per_step: Option<u64>,
    growth: Vec<Growth<'a>>,
    ledger: Vec<Entry>,
    /// At the allocated peak; `ledger` is at the reserved one.
    peak_ledger: Vec<Entry>,
}

#[derive(Serialize)]
struct Parameters {
    total: u64,
    trainable: u64,
    frozen: u64,
    unused: u64,
}

#[derive(Serialize)]
struct Category {
    name: &'static str,
    bytes: u64,
}

/// `bytes` with the modules below; `own_bytes` of all modules sum to the peak.
#[derive(Serialize)]
struct Module<'a> {
    path: &'a str,
    class: &'a str,
    bytes: u64,
    saved_bytes: u64,
    own_bytes: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
    /// What stands there.
    source: Option<&'a str>,
    bytes: u64,
    count: u64,
    /// Lines of packages that it has led to, largest first.
    library: Vec<LibraryLine<'a>>,
}

#[derive(Serialize)]
struct LibraryLine<'a> {
    library_file: &'a str,
    library_line: u32,
    function: &'a str,
    bytes: u64,
    count: u64,
}

#[derive(Serialize)]
struct Operator<'a> {
    name: &'a str,
    bytes: u64,
    count: u64,
}

#[derive(Serialize)]
struct Area<'a> {
    name: &'a str,
    bytes: u64,
    count: u64,
    /// Such as micro-batches; 0 if it has none.
    parts: u64,
}

#[derive(Serialize)]
struct Tensor<'a> {
    bytes: u64,
    block_bytes: u64,
    shape: Option<&'a [u64]>,
    dtype: Option<&'a str>,
    category: &'static str,
    name: Option<&'a str>,
    also: Vec<Also<'a>>,
    #[serde(flatten)]
    origin: OriginRow<'a>,
    born_step: Option<u32>,
    born_phase: Option<&'static str>,
    /// PyTorch would have gone on without it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    soft: bool,
}

#[derive(Serialize)]
struct Also<'a> {
    category: &'static str,
    name: &'a str,
}

/// Who and where; null where it is not known.
#[derive(Default, Serialize)]
pub(crate) struct OriginRow<'a> {
    pub(crate) module: Option<&'a str>,
    pub(crate) operator: Option<&'a str>,
    pub(crate) node: Option<&'a str>,
    pub(crate) file: Option<&'a str>,
    pub(crate) line: Option<u32>,
    /// Where the user's line has led to in a package.
    library_file: Option<&'a str>,
    library_line: Option<u32>,
}

#[derive(Serialize)]
struct Phase {
    name: &'static str,
    step: u32,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
}

/// What is alive at the peak, by the phase that made it.
#[derive(Serialize)]
struct Born {
    phase: &'static str,
    bytes: u64,
    count: u64,
}

#[derive(Serialize)]
struct Step {
    step: u32,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
}

/// What autograd keeps for the backward pass, and what forward hooks count instead.
#[derive(Serialize)]
struct Saved {
    saved_bytes: u64,
    module_outputs_bytes: u64,
}

#[derive(Serialize)]
struct Growth<'a> {
    bytes_per_step: u64,
    bytes: u64,
    count: u64,
    category: &'static str,
    held_by: Option<&'a str>,
    #[serde(flatten)]
    origin: OriginRow<'a>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    bytes: u64,
    known: &'static str,
}

fn areas(at: &Dissection) -> Vec<Area<'_>> {
    fn area(row: &AreaBytes) -> Area<'_> {
        let AreaBytes { name, bytes, count, parts } = row;
        Area { name, bytes: *bytes, count: *count, parts: *parts }
    }
    at.areas.iter().map(area).collect()
}

/// What is alive at one moment, as at a request that failed.
#[derive(Serialize)]
pub(crate) struct Held<'a> {
    allocated_bytes: u64,
    reserved_bytes: u64,
    categories: Vec<Category>,
    modules: Vec<Module<'a>>,
    lines: Vec<Line<'a>>,
    tensors: Vec<Tensor<'a>>,
    ledger: Vec<Entry>,
}

impl<'a> Held<'a> {
    pub(crate) fn of(at: &'a Dissection) -> Held<'a> {
        Held {
            allocated_bytes: at.allocated,
            reserved_bytes: at.reserved,
            categories: categories(at),
            modules: modules(at),
            lines: lines(at),
            tensors: tensors(at),
            ledger: ledger(at),
        }
    }
}

impl<'a> Body<'a> {
    /// The allocated peak by every dimension; the ledger is that of the reserved peak.
    pub(crate) fn of(anatomy: &'a Anatomy) -> Body<'a> {
        let peak = &anatomy.allocated_peak;
        let step = |peak: anatomy::StepPeak| Step {
            step: peak.step,
            peak_allocated_bytes: peak.allocated,
            peak_reserved_bytes: peak.reserved,
        };
        Body {
            parameters: anatomy.parameters.map(|counts| Parameters {
                total: counts.total,
                trainable: counts.trainable,
                frozen: counts.frozen,
                unused: counts.unused,
            }),
            categories: categories(peak),
            modules: modules(peak),
            lines: lines(peak),
            areas: areas(peak),
            operators: peak
                .operators
                .iter()
                .map(|row| Operator { name: &row.name, bytes: row.bytes, count: row.count })
                .collect(),
            tensors: tensors(peak),
            phases: phases(anatomy),
            born: peak
                .born
                .iter()
                .map(|row| Born {
                    phase: row.phase.map_or("unknown", |phase| phase.name()),
                    bytes: row.bytes,
                    count: row.count,
                })
                .collect(),
            first_step: anatomy.first_step.map(step),
            steady_step: anatomy.steady_step.map(step),
            saved: anatomy.saved.map(|saved| Saved {
                saved_bytes: saved.kept,
                module_outputs_bytes: saved.outputs,
            }),
            growth_bytes_per_step: Some(anatomy.growth.bytes_per_step),
            growth: growth(anatomy),
            ledger: ledger(&anatomy.reserved_peak),
            peak_ledger: ledger(peak),
        }
    }
}

fn categories(at: &Dissection) -> Vec<Category> {
    at.categories.iter().map(|(name, bytes)| Category { name, bytes }).collect()
}

fn modules(at: &Dissection) -> Vec<Module<'_>> {
    let rows = at.modules.iter().map(|row| Module {
        path: &row.path,
        class: &row.class,
        bytes: row.total,
        saved_bytes: row.saved,
        own_bytes: row.own,
    });
    rows.collect()
}

fn lines(at: &Dissection) -> Vec<Line<'_>> {
    let rows = at.lines.iter().map(|row| Line {
        file: known(&row.file),
        line: known(&row.file).map(|_| row.line),
        function: known(&row.function),
        source: known(&row.source),
        bytes: row.bytes,
        count: row.count,
        library: row.library.iter().map(library_line).collect(),
    });
    rows.collect()
}

fn library_line((line, bytes, count): &(anatomy::LibraryLine, u64, u64)) -> LibraryLine<'_> {
    LibraryLine {
        library_file: &line.file,
        library_line: line.line,
        function: &line.function,
        bytes: *bytes,
        count: *count,
    }
}

fn tensors(at: &Dissection) -> Vec<Tensor<'_>> {
    let rows = at.tensors.iter().take(LARGEST).map(|row| Tensor {
        bytes: row.bytes,
        block_bytes: row.block,
        shape: known(&row.dtype).map(|_| &row.shape[..]),
        dtype: known(&row.dtype),
        category: row.category.name(),
        name: known(&row.name),
        also: row
            .also
            .iter()
            .map(|(category, name)| Also { category: category.name(), name })
            .collect(),
        origin: place(&row.origin),
        born_step: (row.born.step != 0).then_some(row.born.step),
        born_phase: row.born.phase.map(|phase| phase.name()),
        soft: row.is_soft,
    });
    rows.collect()
}

fn phases(anatomy: &Anatomy) -> Vec<Phase> {
    let rows = anatomy.phases.iter().map(|row| Phase {
        name: row.when.phase.map_or("unknown", |phase| phase.name()),
        step: row.when.step,
        peak_allocated_bytes: row.allocated,
        peak_reserved_bytes: row.reserved,
    });
    rows.collect()
}

fn growth(anatomy: &Anatomy) -> Vec<Growth<'_>> {
    let rows = anatomy.growth.sites.iter().map(|site| Growth {
        bytes_per_step: site.bytes_per_step,
        bytes: site.bytes,
        count: site.count,
        category: site.category.name(),
        held_by: known(&site.holder),
        origin: place(&site.origin),
    });
    rows.collect()
}

fn ledger(at: &Dissection) -> Vec<Entry> {
    let rows = at.ledger.iter().map(|row| Entry {
        name: row.part.name(),
        bytes: row.bytes,
        known: match row.known {
            Known::Measured => "measured",
            Known::Modelled => "modelled",
            Known::Assumed => "assumed",
        },
    });
    rows.collect()
}

/// Who and where, in JSON.
pub(crate) fn place(origin: &Origin) -> OriginRow<'_> {
    OriginRow {
        module: known(&origin.module),
        // A backward pass has nodes where a forward pass has operators.
        operator: known(&origin.operator).or(known(&origin.node)),
        node: known(&origin.node),
        file: known(&origin.file),
        line: known(&origin.file).map(|_| origin.line),
        library_file: known(&origin.library.file),
        library_line: known(&origin.library.file).map(|_| origin.library.line),
    }
}

pub(crate) fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
