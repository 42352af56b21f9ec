//! What the run ran on, and what else it fits on.

use serde::Serialize;
use study::Run;

use crate::workspaces;

#[derive(Serialize)]
pub(super) struct Gpu<'a> {
    name: &'a str,
    title: &'a str,
    memory_bytes: u64,
    /// What other programs hold of it.
    used_bytes: u64,
    context_bytes: u64,
    context_known: &'static str,
    /// The least and the most that one process was seen to take of such a card beside PyTorch's own memory.
    context_range_bytes: [u64; 2],
    compute_capability: String,
    /// Whether the script's torch has kernels that run on it.
    has_kernels: Option<bool>,
}

impl<'a> Gpu<'a> {
    pub(super) fn of(card: &'a gpus::Card, has_kernels: Option<bool>) -> Gpu<'a> {
        let (major, minor) = card.compute_capability;
        let range = card.context_range();
        Gpu {
            name: card.name,
            title: card.shown_title(),
            memory_bytes: card.memory_bytes,
            used_bytes: card.used_bytes,
            context_bytes: card.context_bytes,
            context_known: if card.is_context_assumed() { "assumed" } else { "measured" },
            context_range_bytes: [range.low, range.high],
            compute_capability: format!("{major}.{minor}"),
            has_kernels,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Software<'a> {
    torch: &'a str,
    cuda: &'a str,
    cudnn: &'a str,
    python: &'a str,
    workspaces: &'static str,
}

impl<'a> Software<'a> {
    pub(super) fn of(run: &'a Run) -> Software<'a> {
        Software {
            torch: &run.software.torch,
            cuda: &run.software.cuda,
            cudnn: &run.software.cudnn,
            python: &run.software.python,
            workspaces: workspaces::known(&run.workspaces),
        }
    }
}

#[derive(Serialize)]
pub(super) struct FitsOn<'a> {
    name: &'a str,
    memory_bytes: u64,
    /// `run`, `measured`, `replayed` or `likely`.
    known: &'static str,
    /// What is left there is less than our own error.
    is_tight: bool,
}

impl<'a> FitsOn<'a> {
    pub(super) fn of(card: &'a study::FitsOn) -> FitsOn<'a> {
        FitsOn {
            name: &card.name,
            memory_bytes: card.memory_bytes,
            known: card.known.name(),
            is_tight: card.is_tight,
        }
    }
}
