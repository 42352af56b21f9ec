//! The versions that a script ran with, and whether its torch has kernels for the card.

use contract::files::Process;
use study::Software;

use crate::settings::Settings;

pub(super) fn of(process: &Process) -> Software {
    Software {
        torch: process.torch.clone(),
        cuda: process.cuda.clone().unwrap_or_default(),
        cudnn: cudnn_text(process.cudnn),
        python: process.python.clone(),
    }
}

/// 92600 as `9.26.0`; empty if it could not be asked.
pub(super) fn cudnn_text(version: u64) -> String {
    if version == 0 {
        return String::new();
    }
    format!("{}.{}.{}", version / 10_000, version % 10_000 / 100, version % 100)
}

/// Whether the script's torch has kernels for the card.
pub(super) fn has_kernels(settings: &Settings, targets: &[String]) -> Option<bool> {
    gpus::has_kernels(targets, settings.card.as_ref()?.compute_capability)
}
