//! The environment variables by which the launcher speaks to the phantom and to the doorway.

/// One variable: its name, what holds without it, and what it means.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name.
    pub name: &'static str,
    /// What holds when it is not set.
    pub default: &'static str,
    /// One sentence.
    pub meaning: &'static str,
}

macro_rules! variables {
    ($($constant:ident = $name:literal, $default:literal, $meaning:literal;)*) => {
        $(#[doc = $meaning] pub const $constant: &str = $name;)*

        /// Every variable, in the order of the reference page.
        pub const VARIABLES: &[Variable] = &[
            $(Variable { name: $name, default: $default, meaning: $meaning },)*
        ];
    };
}

variables! {
    GPU = "FATHOM_GPU", "unlimited memory, architecture of an A100", "The card, by its name in the catalogue.";
    MEMORY = "FATHOM_MEMORY", "the card's own", "Total memory of the card, as `16GiB` or `17179869184B`, instead of the catalogue's.";
    USED = "FATHOM_USED", "none", "What other programs hold of the card already, as `2GiB`.";
    DEVICES = "FATHOM_DEVICES", "1, or as many as `CUDA_VISIBLE_DEVICES` names", "How many such cards the machine has.";
    WORLD_SIZE = "FATHOM_WORLD_SIZE", "none", "How many ranks there are in the world that this process is one of.";
    RANK = "FATHOM_RANK", "0", "Which rank of that world this process is.";
    LETTERS = "FATHOM_LETTERS", "none", "Folder where ranks of one run leave what only they know.";
    CUDA = "FATHOM_CUDA", "13020", "The CUDA version to report, as 1000 × major + 10 × minor.";
    CUDNN = "FATHOM_CUDNN", "none", "Path of a real `libcudnn.so.9` that is asked for convolution workspaces.";
    CUDNN_VERSION = "FATHOM_CUDNN_VERSION", "99900, newer than any torch asks for", "The cuDNN version to report: the one that torch was built with.";
    CACHE = "FATHOM_CACHE", "none", "Folder where cuDNN's answers are kept between runs.";
    RUN = "FATHOM_RUN", "none", "Folder of this run: status pages and the doorway's files.";
    STEPS = "FATHOM_STEPS", "0", "Optimizer steps after which the script is stopped; 0 lets it end by itself.";
    VALUES = "FATHOM_VALUES", "on", "`off` switches off true values: sizes that depend on them are the least that they can be.";
    VALUE_SECONDS = "FATHOM_VALUE_SECONDS", "300", "Seconds that a process may spend on computing values that sizes and branches depend on, by its own estimate.";
    VALUE_BYTES = "FATHOM_VALUE_BYTES", "2147483648", "Bytes of host memory that values may take until somebody asks for them.";
    ASSUME = "FATHOM_ASSUME", "least", "What values are taken for that nobody knows: `most` for all, or a line for each place, as `train.py:88=1200`.";
    SEED = "FATHOM_SEED", "on", "`off` leaves random numbers alone where a script sets no seed.";
    EVENTS = "FATHOM_EVENTS", "at once", "`late` completes events only when the host has waited for them, so that memory used by other streams comes back as late as on the slowest card.";
    RECORD = "FATHOM_RECORD", "on", "`off` switches off the recording of who holds the memory.";
    SOURCES = "FATHOM_SOURCES", "off", "`on` lists the files and folders that the script reads, looks for and lists: trials are remembered by it.";
    LEVERS = "FATHOM_LEVERS", "none", "Changes to try inside the script, as a JSON list of `{\"lever\": name, …}`.";
    FLOPS = "FATHOM_FLOPS", "off", "`on` counts floating-point operations per module; the run's peaks are not the script's own then.";
    STRICT = "FATHOM_STRICT", "off", "`1` aborts at the first call that is not simulated.";
    TRACE = "FATHOM_TRACE", "off", "`1` prints each call that fails, with the reason.";
    DOORWAY = "FATHOM_DOORWAY", "none", "Folder of the Python package that is loaded into a process that imports torch.";
    RECORDER = "FATHOM_RECORDER", "beside the package", "The part of that package that is written in Rust, `libfathom_recorder.so`.";
}

/// The page `docs/reference/environment.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         Generated from `crates/cuda-abi/src/environment.rs` (`UPDATE_GOLDEN=1 cargo test -p cuda-abi`).\n\n\
         `fathom run` sets these for the processes it starts. `FATHOM_GPU`, `FATHOM_MEMORY`, `FATHOM_USED`, `FATHOM_STEPS`, \
         `FATHOM_VALUES`, `FATHOM_RECORD`, `FATHOM_TIMEOUT`, `FATHOM_BUDGET`, `FATHOM_BASELINE` and `FATHOM_MARGIN` can also be set by hand instead of the flags; flags win.\n\n\
         | variable | without it | meaning |\n| --- | --- | --- |\n",
    );
    for variable in VARIABLES {
        page += &format!("| `{}` | {} | {} |\n", variable.name, variable.default, variable.meaning);
    }
    page
}
