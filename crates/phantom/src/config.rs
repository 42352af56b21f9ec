//! What the launcher asked for, read once from the environment.

use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

use contract::environment as name;
use gpus::{Card, Loading};

/// The settings of this process.
pub(crate) struct Config {
    pub(crate) card: Card,
    /// 1000 × major + 10 × minor.
    pub(crate) cuda_version: i32,
    pub(crate) cudnn_version: usize,
    pub(crate) cudnn: Option<PathBuf>,
    pub(crate) cache: Option<PathBuf>,
    pub(crate) run: Option<PathBuf>,
    pub(crate) strict: bool,
    pub(crate) trace: bool,
    /// Whether small tensors hold true values.
    pub(crate) values: bool,
    /// Whether events complete only when the host has waited for them.
    pub(crate) late_events: bool,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

/// The settings; the environment is read at the first call.
pub(crate) fn get() -> &'static Config {
    CONFIG.get_or_init(read)
}

/// Folder of the doorway. Read apart from the settings: it is asked for while torch is imported, and a
/// process that is forked after that may still be given settings of its own.
pub(crate) fn doorway() -> Option<PathBuf> {
    path(name::DOORWAY)
}

/// For the doorway: whether the settings were read, so that a forked child cannot have others.
#[unsafe(no_mangle)]
pub extern "C" fn fathom_is_settled() -> i32 {
    i32::from(CONFIG.get().is_some())
}

fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.trim().parse().ok()
}

/// A size as the launcher writes it: `25414860800B`.
fn bytes(name: &str) -> Option<u64> {
    env::var(name).ok()?.trim().trim_end_matches('B').parse().ok()
}

fn read() -> Config {
    Config {
        card: card(bytes(name::MEMORY), bytes(name::USED)),
        cuda_version: number(name::CUDA).map_or(13020, |version| version as i32),
        cudnn_version: number(name::CUDNN_VERSION).map_or(99900, |version| version as usize),
        cudnn: path(name::CUDNN),
        cache: path(name::CACHE),
        run: path(name::RUN),
        strict: env::var(name::STRICT).is_ok_and(|text| text == "1"),
        trace: env::var(name::TRACE).is_ok_and(|text| text == "1"),
        values: env::var(name::VALUES).map_or(true, |text| text != "off"),
        late_events: env::var(name::EVENTS).is_ok_and(|text| text == "late"),
    }
}

/// The launcher has checked the name; a wrong one here comes from a hand-set variable.
fn card(memory_bytes: Option<u64>, used_bytes: Option<u64>) -> Card {
    let name = env::var(name::GPU).unwrap_or_default();
    let mut card = match name.as_str() {
        "" | "unlimited" => gpus::unlimited(),
        text => gpus::find(text).cloned().unwrap_or_else(|error| {
            eprintln!("fathom: {error}; the phantom goes on with unlimited memory");
            gpus::unlimited()
        }),
    };
    if let Some(bytes) = memory_bytes {
        card = card.with_memory(bytes);
    }
    let loading = Loading::of(env::var("CUDA_MODULE_LOADING").ok().as_deref());
    card.with_used(used_bytes.unwrap_or(0)).with_loading(loading)
}
