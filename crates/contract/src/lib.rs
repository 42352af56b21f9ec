//! What the processes of a run tell each other, each thing in one place.
//!
//! Three kinds: variables of the environment ([`environment`]), pages that a process shares while it lives
//! ([`status`], [`cards`], [`work`]), and files that it leaves ([`files`]). The phantom and the recorder are
//! loaded into strangers' processes, the command reads what they leave, and `python/fathom/contract.py` is
//! generated from here (`UPDATE_GOLDEN=1 cargo test -p contract`): so no side has names or fields of its own.

pub mod cards;
pub mod environment;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "files")]
pub mod generated;
pub mod machine;
pub mod status;
pub mod work;

/// Why the bytes of a page are not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPage {
    /// Only zeros: the process ended before it wrote to it.
    Unused,
    /// Of another version, or no page at all.
    Foreign,
    /// It ends too early.
    Short,
}

impl std::fmt::Display for NoPage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            NoPage::Unused => "was never used",
            NoPage::Foreign => "is damaged, or of another version of Fathom",
            NoPage::Short => "is cut short",
        })
    }
}

/// Whether bytes are a page of this size that begins so.
pub(crate) fn check_page(bytes: &[u8], magic: u64, size: usize) -> Result<(), NoPage> {
    let start = bytes.get(..8).and_then(|start| start.try_into().ok()).map(u64::from_ne_bytes);
    match start {
        Some(start) if start == magic && size <= bytes.len() => Ok(()),
        Some(start) if start == magic => Err(NoPage::Short),
        _ if bytes.iter().all(|byte| *byte == 0) => Err(NoPage::Unused),
        _ => Err(NoPage::Foreign),
    }
}
