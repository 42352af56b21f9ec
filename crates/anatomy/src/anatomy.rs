//! What a recording taken apart is: plain data, exact integers, texts instead of numbers.

use crate::account::Entry;
use recording::{Category, Facts, Parameters, Phase, Saved};

use crate::categories::Categories;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anatomy {
    /// Where `memory_allocated` was greatest.
    pub allocated_peak: Dissection,
    /// The greatest `memory_allocated` without work areas that PyTorch goes on without, such as those of a search for
    /// the fastest kernel. Its fallbacks may need some of it.
    pub hard_allocated: u64,
    /// Where `memory_reserved` was greatest.
    pub reserved_peak: Dissection,
    /// Where the last request failed, if one did.
    pub out_of_memory: Option<OutOfMemory>,
    /// Phases of each step in order, with their own peaks.
    pub phases: Vec<PhasePeak>,
    /// The first training step; `None` without marks.
    pub first_step: Option<StepPeak>,
    /// The last training step; `None` if there is only one.
    pub steady_step: Option<StepPeak>,
    /// What grows with every step.
    pub growth: Growth,
    /// Counts of parameters, if the recorder saw any.
    pub parameters: Option<Parameters>,
    /// What autograd kept, beside what forward hooks count.
    pub saved: Option<Saved>,
    /// What the recorder saw of the script beside its memory.
    pub facts: Facts,
    /// Path and class of every module that the recorder named.
    pub modules: Vec<(String, String)>,
    /// Whether anything in the recording has a name; without names all is unknown.
    pub has_names: bool,
    /// Whether the names were not recorded but inferred, as those of a snapshot.
    pub is_inferred: bool,
    /// How many events of the allocator were looked at; 0 of a state without a trace.
    pub events: usize,
}

/// When something was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct When {
    /// `None`: the recording has no marks, or it was before the recording.
    pub phase: Option<Phase>,
    /// From 1; 0 if not known.
    pub step: u32,
}

/// Who and where. Texts are empty, and the line 0, where nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Path of the module.
    pub module: String,
    pub operator: String,
    /// The autograd node, in a backward pass.
    pub node: String,
    /// The user's file.
    pub file: String,
    /// The user's function.
    pub function: String,
    /// The user's line.
    pub line: u32,
    /// The line of a package, other than torch, that the user's line has led to.
    pub library: LibraryLine,
}

/// A line of an installed package; empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LibraryLine {
    /// In its package: `transformers/trainer.py`.
    pub file: String,
    pub line: u32,
    pub function: String,
}

/// One moment taken apart. Modules' own bytes, lines, operators and phases each sum to `allocated`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dissection {
    /// How many events had happened.
    pub time: usize,
    /// Phase and step.
    pub when: When,
    /// Bytes of blocks handed out: `memory_allocated`.
    pub allocated: u64,
    /// Bytes asked for, as PyTorch counts them: blocks that a stream still uses are among them.
    pub requested: u64,
    /// Bytes taken from the card: `memory_reserved`.
    pub reserved: u64,
    /// The allocation that happened last, if the last event was one.
    pub raised_by: Option<Origin>,
    /// By category, rounding apart.
    pub categories: Categories,
    /// By module: a tree in preorder; first what belongs to none, if there is anything.
    pub modules: Vec<ModuleBytes>,
    /// By the user's line, largest first.
    pub lines: Vec<LineBytes>,
    /// By operator, or by autograd node where there is none, largest first.
    pub operators: Vec<Named>,
    /// By what categories are known, largest first; empty if they were recorded. What has no category has no name here.
    pub evidence: Vec<Named>,
    /// What belongs to methods of distributed training, largest first; not all that is alive does.
    pub areas: Vec<AreaBytes>,
    /// By the phase in which it was made, largest first.
    pub born: Vec<PhaseBytes>,
    /// Every tensor, largest first.
    pub tensors: Vec<Tensor>,
    /// The same with those alike put together, largest first.
    pub alike: Vec<Alike>,
    /// From the card's total down.
    pub ledger: Vec<Entry>,
    /// Of what is reserved.
    pub private: Private,
}

/// Private pools, such as those of CUDA graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Private {
    pub pools: u64,
    /// Of their segments.
    pub bytes: u64,
}

/// A module, with what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleBytes {
    /// Empty for what belongs to no module.
    pub path: String,
    /// Empty if not known.
    pub class: String,
    /// Index of the module above in the same list.
    pub parent: Option<usize>,
    /// Bytes of blocks that are its own.
    pub own: u64,
    /// Those, and of the modules below.
    pub total: u64,
    /// Of the total: kept for the backward pass.
    pub saved: u64,
}

/// A method of distributed training, with what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AreaBytes {
    /// E.g. `gradient buckets (DDP)`.
    pub name: String,
    /// Bytes of blocks.
    pub bytes: u64,
    /// How many blocks.
    pub count: u64,
    /// How many parts, such as micro-batches, have some of them; 0 if it has no parts.
    pub parts: u64,
}

/// A line of the user's source, with what was allocated for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineBytes {
    /// Empty if not known.
    pub file: String,
    /// 0 if not known.
    pub line: u32,
    /// The function around it.
    pub function: String,
    /// What stands there; empty if not known.
    pub source: String,
    /// Bytes of blocks.
    pub bytes: u64,
    /// How many blocks.
    pub count: u64,
    /// Lines of packages that it has led to, with bytes and blocks, largest first; not all of it needs to have one.
    pub library: Vec<(LibraryLine, u64, u64)>,
}

/// Something with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Empty if not known.
    pub name: String,
    /// Bytes of blocks.
    pub bytes: u64,
    /// How many blocks.
    pub count: u64,
}

/// What was made in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseBytes {
    /// `None` if not known.
    pub phase: Option<Phase>,
    /// Bytes of blocks.
    pub bytes: u64,
    /// How many blocks.
    pub count: u64,
}

/// One allocation that is alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tensor {
    /// Bytes asked for.
    pub bytes: u64,
    /// Bytes of its block.
    pub block: u64,
    /// E.g. `float32`; empty if not known.
    pub dtype: String,
    /// Without meaning if the dtype is not known.
    pub shape: Vec<u64>,
    /// What it is.
    pub category: Category,
    /// E.g. `encoder.weight`.
    pub name: String,
    /// By what the category is known, where nobody recorded it: `frames`; empty if it was recorded, or is not known.
    pub known_by: String,
    /// Other things it is or was, e.g. an activation that is an input too.
    pub also: Vec<(Category, String)>,
    /// Who made it; the module is that of its name, if it has one.
    pub origin: Origin,
    /// When it was made.
    pub born: When,
    /// How many events had happened then: who came first.
    pub made: usize,
    /// When it was given back; `None` if that is not seen.
    pub freed: Option<When>,
    /// Backward passes that were to use it and ended while it was alive, up to this moment.
    pub outlived: u32,
    /// PyTorch would have gone on without it.
    pub is_soft: bool,
}

/// Tensors of one size, shape, category and line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alike {
    pub count: u64,
    /// The first of them; its name and module are those of all: `layers.{0-11}.weight`.
    pub first: Tensor,
}

/// A request that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutOfMemory {
    /// What was asked for.
    pub tried_bytes: u64,
    /// What the card had left.
    pub free_bytes: u64,
    /// Who asked, if that is known.
    pub origin: Origin,
    /// What was alive then.
    pub at: Dissection,
}

/// A phase of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhasePeak {
    /// Which, and of which step.
    pub when: When,
    /// The greatest `memory_allocated` in it.
    pub allocated: u64,
    /// The greatest `memory_reserved` in it.
    pub reserved: u64,
}

/// A training step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepPeak {
    pub step: u32,
    /// The greatest `memory_allocated` in it.
    pub allocated: u64,
    /// The greatest `memory_reserved` in it.
    pub reserved: u64,
}

/// What grows with every step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// In the steady state; 0 if nothing grows, or if there are too few steps to tell.
    pub bytes_per_step: u64,
    /// How many steps were compared.
    pub steps: usize,
    /// Who holds it, largest first.
    pub sites: Vec<GrowthSite>,
}

/// A place whose allocations pile up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrowthSite {
    /// Where they are made.
    pub origin: Origin,
    /// What they are.
    pub category: Category,
    /// What keeps them from being freed; empty if not known.
    pub holder: String,
    /// More each step.
    pub bytes_per_step: u64,
    /// Alive at the last step.
    pub bytes: u64,
    /// How many blocks those are.
    pub count: u64,
}
