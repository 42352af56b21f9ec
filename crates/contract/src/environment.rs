//! Every environment variable of ours, and who speaks to whom by it.

/// One variable: its name, what holds without it, and what it means.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// How the constants of Rust and Python are called.
    pub constant: &'static str,
    /// The name.
    pub name: &'static str,
    /// What holds when it is not set.
    pub default: &'static str,
    /// Who sets it: `fathom` does for the processes that it starts.
    pub set_by: &'static str,
    /// Who reads it.
    pub read_by: &'static str,
    /// One sentence.
    pub meaning: &'static str,
}

macro_rules! variables {
    ($($constant:ident = $name:literal, $default:literal, $set_by:literal, $read_by:literal, $meaning:literal;)*) => {
        $(#[doc = $meaning] pub const $constant: &str = $name;)*

        /// Every variable, in the order of the reference page.
        pub const VARIABLES: &[Variable] = &[
            $(Variable {
                constant: stringify!($constant),
                name: $name,
                default: $default,
                set_by: $set_by,
                read_by: $read_by,
                meaning: $meaning,
            },)*
        ];
    };
}

// Constant, name, what holds without it, who sets it, who reads it, meaning.
variables! {
    GPU = "FATHOM_GPU", "unlimited memory, architecture of an A100", "you, `fathom`", "`fathom`, phantom", "The card, by its name in the catalogue.";
    MEMORY = "FATHOM_MEMORY", "the card's own", "you, `fathom`", "`fathom`, phantom", "Total memory of the card, as `16GiB` or `17179869184B`, instead of the catalogue's.";
    USED = "FATHOM_USED", "none", "you, `fathom`", "`fathom`, phantom", "What other programs hold of the card already, as `2GiB`.";
    DEVICES = "FATHOM_DEVICES", "1, or as many as `CUDA_VISIBLE_DEVICES` names", "you, `fathom`", "phantom, doorway", "How many such cards the machine has.";
    TIMEOUT = "FATHOM_TIMEOUT", "none", "you", "`fathom`", "Seconds after which a run is ended, as `--timeout`.";
    BUDGET = "FATHOM_BUDGET", "none", "you", "`fathom`", "The most that a run may need, as `--budget`.";
    BASELINE = "FATHOM_BASELINE", "none", "you", "`fathom`", "File of the baseline to compare with, as `--baseline`.";
    MARGIN = "FATHOM_MARGIN", "as without `--margin`", "you", "`fathom`", "Growth over the baseline that is allowed, as `--margin`.";
    JOBS = "FATHOM_JOBS", "as many as there are cores and memory for", "you", "`fathom`", "Trials, scripts or ranks that run at once, at most, as `--jobs`.";
    WORLD_SIZE = "FATHOM_WORLD_SIZE", "none", "`fathom`", "doorway", "How many ranks there are in the world that this process is one of.";
    RANK = "FATHOM_RANK", "0", "`fathom`", "doorway", "Which rank of that world this process is.";
    LETTERS = "FATHOM_LETTERS", "none", "`fathom`", "doorway", "Folder where ranks of one run leave what only they know.";
    CUDA = "FATHOM_CUDA", "13020", "`fathom`", "phantom", "The CUDA version to report, as 1000 × major + 10 × minor.";
    CUDNN = "FATHOM_CUDNN", "none", "you, `fathom`", "phantom", "Path of a real `libcudnn.so.9` that is asked for convolution workspaces.";
    CUDNN_VERSION = "FATHOM_CUDNN_VERSION", "99900, newer than any torch asks for", "`fathom`", "phantom", "The cuDNN version to report: the one that torch was built with.";
    CACHE = "FATHOM_CACHE", "`$XDG_CACHE_HOME/fathom`, `~/.cache/fathom`", "you, `fathom`", "`fathom`, phantom", "Folder where stubs, cuDNN's answers and remembered trials are kept between runs.";
    RUN = "FATHOM_RUN", "none", "`fathom`", "phantom, doorway", "Folder of this run: status pages and the doorway's files.";
    STEPS = "FATHOM_STEPS", "0", "you, `fathom`", "`fathom`, doorway", "Optimizer steps after which the script is stopped; 0 lets it end by itself.";
    VALUES = "FATHOM_VALUES", "on", "you, `fathom`", "`fathom`, phantom, doorway", "`off` switches off true values: sizes that depend on them are the least that they can be.";
    VALUE_SECONDS = "FATHOM_VALUE_SECONDS", "300", "you", "doorway", "Seconds that a process may spend on computing values that sizes and branches depend on, by its own estimate.";
    VALUE_BYTES = "FATHOM_VALUE_BYTES", "2147483648", "you", "doorway", "Bytes of host memory that values may take until somebody asks for them.";
    ASSUME = "FATHOM_ASSUME", "least", "`fathom`", "doorway", "What values are taken for that nobody knows: `most` for all, or a line for each place, as `train.py:88=1200`.";
    SEED = "FATHOM_SEED", "on", "you", "doorway", "`off` leaves random numbers alone where a script sets no seed.";
    EVENTS = "FATHOM_EVENTS", "at once", "you", "`fathom`, phantom", "`late` completes events only when the host has waited for them, so that memory used by other streams comes back as late as on the slowest card.";
    RECORD = "FATHOM_RECORD", "on", "you, `fathom`", "`fathom`, doorway", "`off` switches off the recording of who holds the memory.";
    VERIFY = "FATHOM_VERIFY", "confined", "you", "`fathom`", "`off`: `fathom run` does not run the command again to find what it needs; `on`: also where that cannot be kept from writing files, as `--verify`.";
    WHOLE_RUN = "FATHOM_WHOLE_RUN", "on", "you", "`fathom`", "`off`: `fathom run` does not run a shortened training to see evaluation and saving, as `--whole`.";
    WHOLE = "FATHOM_WHOLE", "none", "`fathom`", "doorway", "How a training is shortened, as JSON: batches of an epoch, steps, seconds. Only a confined run is.";
    CONFINED = "FATHOM_CONFINED", "none", "`fathom`", "`fathom`, doorway", "A repeated run writes nowhere but into named folders, as JSON: who tells the kernel so, these folders, and when the first run ran, whose new files are not seen.";
    SOURCES = "FATHOM_SOURCES", "off", "`fathom`", "doorway", "`on` lists the files and folders that the script reads, looks for and lists: trials are remembered by it.";
    LEVERS = "FATHOM_LEVERS", "none", "you, `fathom`", "doorway", "Changes to try inside the script, as a JSON list of `{\"lever\": name, …}`.";
    FLOPS = "FATHOM_FLOPS", "off", "you, `fathom`", "doorway", "`on` counts floating-point operations per module; the run's peaks are not the script's own then.";
    STRICT = "FATHOM_STRICT", "off", "you", "phantom", "`1` aborts at the first call that is not simulated.";
    TRACE = "FATHOM_TRACE", "off", "you", "phantom", "`1` prints each call that fails, with the reason.";
    DOORWAY = "FATHOM_DOORWAY", "none", "`fathom`", "phantom", "Folder of the Python package that is loaded into a process that imports torch.";
    RECORDER = "FATHOM_RECORDER", "beside the package", "`fathom`", "doorway", "The part of that package that is written in Rust, `libfathom_recorder.so`.";
    PYTEST_OUTCOME = "FATHOM_PYTEST_OUTCOME", "none", "pytest plugin", "pytest plugin", "File in which the pytest inside of a run says what came of its test.";
}

/// Commands whose flags can be set, each below its own name.
pub const COMMANDS: [&str; 11] = [
    "run",
    "check",
    "report",
    "fit",
    "sweep",
    "explain",
    "diff",
    "page",
    "viewer",
    "replay",
    "calibrate",
];

/// The variable that sets a flag of one command: `page` of `run`.
pub fn of_flag(command: &str, flag: &str) -> String {
    format!("FATHOM_{command}_{flag}").replace('-', "_").to_uppercase()
}

/// The variable of a setting that several commands share.
pub fn of_setting(setting: &str) -> String {
    // The plain name says how a training is shortened.
    let name = if setting == "whole" { "whole-run" } else { setting };
    format!("FATHOM_{name}").replace('-', "_").to_uppercase()
}

/// Switches of our own tests: name, meaning. No process of a run reads them.
pub const OF_TESTS: &[(&str, &str)] = &[
    ("FATHOM_CASE", "the one case of the differential tests to run"),
    ("FATHOM_COMMAND", "the command that the differential tests start"),
    ("FATHOM_DIFFERENTIAL", "`required`: differential tests fail where a torch is missing"),
    ("FATHOM_EXTENSION_PYTHON", "a Python with NVIDIA's compiler, for `tests/test_extension.py`"),
    ("FATHOM_ALL_NAMES", "`1`: names of snapshots are scored with every script"),
    ("FATHOM_FAULTS", "`long`: all of `tests/faults`"),
    ("FATHOM_FAULTS_SEED", "where the random faults begin"),
    ("FATHOM_FUZZ_SECONDS", "how long the corpus is changed at random"),
    ("FATHOM_FUZZ_SEED", "where that begins"),
    ("FATHOM_OUTCOMES", "the file of results of `tests/pytorch`"),
    ("FATHOM_PID", "a test's own: the process that a script sends a signal to"),
    ("FATHOM_PYTHON_", "and a version: the Python of that torch, for the differential tests"),
    ("FATHOM_SNAPSHOTS", "a folder of memory snapshots"),
    (
        "FATHOM_TOOLS_PYTHON",
        "a Python with tools that ask for GPUs and start scripts, for `tests/test_smi.py` and `tests/test_starters.py`",
    ),
    ("FATHOM_TEST_SECONDS", "how long one of PyTorch's own tests may take"),
    ("FATHOM_TEST_SEED", "where random arguments of C functions begin"),
    ("FATHOM_TWICE", "`all`: every script is run twice"),
    ("FATHOM_WHEEL", "the wheel that is tested"),
];

/// The page `docs/reference/environment.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         Generated from `crates/contract/src/environment.rs` (`UPDATE_GOLDEN=1 cargo test -p contract`).\n\n\
         `fathom` sets these for the processes that it starts: the *phantom* is the library that stands for the GPU, \
         the *doorway* is Fathom's Python inside the script's process. Where `fathom` itself reads one, it can be set \
         by hand instead of the flag; flags win.\n\n\
         | variable | without it | set by | read by | meaning |\n| --- | --- | --- | --- | --- |\n",
    );
    for Variable { name, default, set_by, read_by, meaning, .. } in VARIABLES {
        page += &format!("| `{name}` | {default} | {set_by} | {read_by} | {meaning} |\n");
    }
    page += "\n## Flags of one command\n\n\
             Every other flag has a variable that begins with the name of its command: `FATHOM_RUN_PAGE` is `--page` of \
             `fathom run`, `FATHOM_FIT_HEADROOM` is `--headroom` of `fathom fit`. Switches take `on` and `off`; what can be \
             repeated takes a line each. The same flags can stand in [`fathom.toml`](settings.md).\n";
    page
}
