//! One of the two sides: what is known of a run at its allocated peak. Texts are empty, and lines 0,
//! where nothing is known.

use anatomy::{Anatomy, Dissection, LineBytes as Line};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// As it was given on the command line.
    pub name: String,
    /// The version of torch.
    pub torch: String,
    pub card: String,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub settings: String,
    /// When the peak was: `backward, step 2`.
    pub when: String,
    /// Whether memory ran out.
    pub ran_out: bool,
    pub totals: Totals,
    /// Bytes by category.
    pub categories: Vec<(String, u64)>,
    /// Every module, in order; those that hold nothing too, as far as they are known.
    pub modules: Vec<Module>,
    /// Bytes by operator.
    pub operators: Vec<(String, u64)>,
    /// Bytes by line.
    pub lines: Vec<Line>,
    /// Every tensor, or the largest.
    pub tensors: Vec<Tensor>,
    /// If only the largest tensors are listed: those up to this size may be missing.
    pub unlisted_below: Option<u64>,
    /// Phases of each step.
    pub phases: Vec<Phase>,
    pub findings: Vec<Cause>,
    /// What the reader should know about it.
    pub notes: Vec<String>,
}

/// Peaks in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The greatest `memory_allocated`.
    pub allocated: u64,
    /// Bytes asked for, then.
    pub requested: u64,
    /// The greatest `memory_reserved`.
    pub reserved: u64,
    /// Memory taken from the card, context included.
    pub device: Option<u64>,
    /// The smallest card on which it still completes.
    pub floor: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Its path; empty for what belongs to no module.
    pub path: String,
    pub class: String,
    /// Bytes that are its own.
    pub own: u64,
    /// Those, and of the modules below.
    pub total: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tensor {
    /// Bytes of its block.
    pub bytes: u64,
    /// E.g. `activations`.
    pub category: String,
    /// E.g. `float32`.
    pub dtype: String,
    /// Without meaning if the dtype is not known.
    pub shape: Vec<u64>,
    /// E.g. `encoder.weight`.
    pub name: String,
    /// Path of its module.
    pub module: String,
    /// The operator, or the autograd node.
    pub operator: String,
    /// The user's file.
    pub file: String,
    /// The user's line.
    pub line: u32,
}

/// A phase of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// E.g. `backward`.
    pub name: String,
    /// The greatest `memory_allocated` in it.
    pub allocated: u64,
    /// The greatest `memory_reserved` in it.
    pub reserved: u64,
}

/// A root cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    pub id: String,
    pub title: String,
    /// Bytes that it explains.
    pub bytes: u64,
}

impl Side {
    /// The side of an anatomy and its findings. What surrounds them (name, card, what the card had to
    /// give) is for the caller to add.
    pub fn of(anatomy: &Anatomy, findings: &[diagnose::Finding]) -> Side {
        let at = &anatomy.allocated_peak;
        Side {
            when: when(at.when.phase.map(|phase| phase.name()), at.when.step.into()),
            ran_out: anatomy.out_of_memory.is_some(),
            totals: Totals {
                allocated: at.allocated,
                requested: at.requested,
                reserved: anatomy.reserved_peak.reserved,
                ..Totals::default()
            },
            categories: at.categories.iter().map(|(name, bytes)| (name.into(), bytes)).collect(),
            modules: modules(anatomy),
            operators: at.operators.iter().map(|row| (row.name.clone(), row.bytes)).collect(),
            lines: at.lines.clone(),
            tensors: tensors(at),
            phases: phases(anatomy),
            findings: findings
                .iter()
                .map(|finding| Cause {
                    id: finding.id.to_owned(),
                    title: finding.title.clone(),
                    bytes: finding.bytes,
                })
                .collect(),
            ..Side::default()
        }
    }

    /// Every dimension brought to sum to the peak: what it lacks goes to what is not known. Tensors
    /// are closed by [`crate::tensors`], which knows what the other side lists.
    pub(crate) fn closed(&self) -> Side {
        let mut side = self.clone();
        let left = |sum: u64| side.totals.allocated.saturating_sub(sum);
        let of_categories = left(self.categories.iter().map(|row| row.1).sum());
        let of_operators = left(self.operators.iter().map(|row| row.1).sum());
        let of_modules = left(self.modules.iter().map(|row| row.own).sum());
        let of_lines = left(self.lines.iter().map(|row| row.bytes).sum());
        side.categories.push(("unknown".to_owned(), of_categories));
        side.operators.push((String::new(), of_operators));
        if of_modules != 0 {
            let nowhere = find_or_add(&mut side.modules, |module| module.path.is_empty());
            nowhere.own += of_modules;
            nowhere.total += of_modules;
        }
        if of_lines != 0 {
            find_or_add(&mut side.lines, |line| line.file.is_empty()).bytes += of_lines;
        }
        side
    }
}

/// `backward, step 2`, as far as it is known.
pub fn when(phase: Option<&str>, step: u64) -> String {
    match (phase, step) {
        (None | Some(""), _) => String::new(),
        (Some(phase), 0) => phase.replace('_', " "),
        (Some(phase), step) => format!("{}, step {step}", phase.replace('_', " ")),
    }
}

/// The first row that is so, or a new one.
fn find_or_add<Row: Default>(rows: &mut Vec<Row>, is: impl Fn(&Row) -> bool) -> &mut Row {
    let at = rows.iter().position(is).unwrap_or_else(|| {
        rows.push(Row::default());
        rows.len() - 1
    });
    &mut rows[at]
}

/// Those at the peak with their bytes, then the others: a module may be there and hold nothing.
fn modules(anatomy: &Anatomy) -> Vec<Module> {
    let held = anatomy.allocated_peak.modules.iter().map(|row| Module {
        path: row.path.clone(),
        class: row.class.clone(),
        own: row.own,
        total: row.total,
    });
    let mut all: Vec<Module> = held.collect();
    let seen: std::collections::HashSet<String> = all.iter().map(|row| row.path.clone()).collect();
    let others = anatomy.modules.iter().filter(|(path, _)| !seen.contains(path));
    all.extend(others.map(|(path, class)| Module {
        path: path.clone(),
        class: class.clone(),
        ..Module::default()
    }));
    all
}

fn tensors(at: &Dissection) -> Vec<Tensor> {
    let rows = at.tensors.iter().map(|row| {
        let origin = &row.origin;
        let maker = if origin.operator.is_empty() { &origin.node } else { &origin.operator };
        Tensor {
            bytes: row.block,
            category: row.category.name().to_owned(),
            dtype: row.dtype.clone(),
            shape: row.shape.clone(),
            name: row.name.clone(),
            module: origin.module.clone(),
            operator: maker.clone(),
            file: origin.file.clone(),
            line: origin.line,
        }
    });
    rows.collect()
}

fn phases(anatomy: &Anatomy) -> Vec<Phase> {
    let rows = anatomy.phases.iter().filter_map(|row| {
        let name = row.when.phase?.name().to_owned();
        Some(Phase { name, allocated: row.allocated, reserved: row.reserved })
    });
    rows.collect()
}
