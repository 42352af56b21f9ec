//! What the GPU's memory consists of, down to what `nvidia-smi` shows.

use serde::Serialize;
use study::Run;

use super::answer::moment;
use crate::bytes;
use crate::markup::table;
use crate::sections::columns::share;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Anatomy {
    /// They add up to `device_bytes`.
    pub components: Vec<Component>,
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
    /// The most that the processes of the run hold of the GPU.
    pub device_bytes: u64,
    /// All that the GPU has; `None` without one.
    pub card_bytes: Option<u64>,
    pub when: String,
    pub parameters: Option<Parameters>,
    /// Bytes of forward hooks and of autograd.
    pub hooks_bytes: Option<u64>,
    pub saved_bytes: Option<u64>,
    /// The run did not fit, so this is what it takes without a limit.
    pub is_unlimited: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parameters {
    pub total: u64,
    pub trainable: u64,
    pub frozen: u64,
    pub unused: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Component {
    /// As categories are named; else `cached`, `cached_later`, `context`, `nccl`, `other`.
    pub name: String,
    pub title: String,
    pub bytes: u64,
    pub known: &'static str,
}

/// Categories that a reader knows by other words.
const TITLES: [(&str, &str); 9] = [
    ("weights", "model weights"),
    ("optimizer", "optimizer states"),
    ("activations", "activations saved for the backward pass"),
    ("temporaries", "temporary buffers and gradients in flight"),
    ("workspace", "scratch memory of cuDNN and cuBLAS"),
    ("model_copies", "extra copies of the model (EMA, teacher)"),
    ("casts", "casts of autocast"),
    ("buffers", "buffers of modules"),
    ("rounding", "rounding of the allocator"),
];

/// A category in words.
pub(super) fn title(name: &str) -> String {
    let known = TITLES.iter().find(|(of, _)| *of == name).map(|(_, title)| (*title).to_owned());
    known.unwrap_or_else(|| name.replace('_', " "))
}

impl Anatomy {
    /// `None` if nobody recorded who holds the memory. `run` is the one that went through.
    pub fn of(run: &Run, is_unlimited: bool) -> Option<Anatomy> {
        let (anatomy, peak) = (run.anatomy()?, run.peak.as_ref()?);
        let at = &anatomy.allocated_peak;
        let held = at.categories.iter().filter(|(_, bytes)| *bytes != 0);
        let row = |name: &str, title: String, bytes: u64, known| Component {
            name: name.to_owned(),
            title,
            bytes,
            known,
        };
        let mut components: Vec<Component> =
            held.map(|(name, bytes)| row(name, title(name), bytes, "measured")).collect();
        let later = peak.reserved.bytes.saturating_sub(at.reserved);
        let context = run.card.as_ref().is_none_or(gpus::Card::is_context_assumed);
        let contexts = peak.contexts.max(1) * peak.context_bytes;
        let counted = at.reserved + later + contexts + peak.nccl_bytes;
        let rest = [
            (
                "cached",
                "cached by PyTorch then, and fragmentation",
                at.reserved.saturating_sub(at.allocated),
                "measured",
            ),
            ("cached_later", "cached by PyTorch at another time", later, "measured"),
            ("context", "CUDA context", contexts, if context { "assumed" } else { "measured" }),
            ("nccl", "buffers of NCCL", peak.nccl_bytes, "modelled"),
            (
                "other",
                "other processes and libraries",
                peak.device_bytes.saturating_sub(counted),
                "measured",
            ),
        ];
        let rest = rest.into_iter().filter(|row| row.2 != 0);
        components.extend(
            rest.map(|(name, title, bytes, known)| row(name, title.to_owned(), bytes, known)),
        );
        let parameters = anatomy.parameters.map(|counts| Parameters {
            total: counts.total,
            trainable: counts.trainable,
            frozen: counts.frozen,
            unused: counts.unused,
        });
        Some(Anatomy {
            components,
            allocated_bytes: at.allocated,
            reserved_bytes: peak.reserved.bytes,
            device_bytes: peak.device_bytes,
            card_bytes: run
                .card
                .as_ref()
                .filter(|card| !card.is_unlimited())
                .map(|card| card.memory_bytes),
            when: moment(&at.when),
            parameters,
            hooks_bytes: anatomy.saved.map(|saved| saved.outputs),
            saved_bytes: anatomy.saved.map(|saved| saved.kept),
            is_unlimited,
        })
    }

    pub(super) fn markdown(&self, picture: Option<&str>) -> String {
        let whole = self.device_bytes;
        let row = |name: &str, size: u64, known: &str| {
            vec![name.to_owned(), bytes::text(size), share(size, whole), known.to_owned()]
        };
        let bold = |name: &str, size: u64| row(&format!("**{name}**"), size, "");
        let is_held = |component: &&Component| {
            !matches!(
                component.name.as_str(),
                "cached" | "cached_later" | "context" | "nccl" | "other"
            )
        };
        let line = |it: &Component| row(&it.title, it.bytes, it.known);
        let mut rows: Vec<Vec<String>> = self.components.iter().filter(is_held).map(line).collect();
        rows.push(bold("allocated by tensors (`max_memory_allocated`)", self.allocated_bytes));
        rows.extend(self.components.iter().filter(|it| !is_held(it)).map(line));
        rows.push(bold("taken of the GPU, what `nvidia-smi` would show", self.device_bytes));
        let mut text = "## Anatomy\n\n".to_owned();
        let at = if self.when.is_empty() { String::new() } else { format!(", {}", self.when) };
        let limit = if self.is_unlimited { " without a limit of memory" } else { "" };
        text += &format!("What is held{limit} when tensors hold most{at}:\n\n");
        text += &table(&["component", "size:", "share:", "known"], &rows);
        text += &self.sentences();
        if let Some(picture) = picture {
            text += &format!("![What holds the memory at the peak, and over time]({picture})\n");
        }
        text
    }

    fn sentences(&self) -> String {
        let mut text = String::new();
        if let Some(Parameters { total, trainable, frozen, unused }) = self.parameters {
            let count = crate::document::places::count;
            text += &format!("The model has {} parameters", count(total));
            let others = [(trainable, "trained"), (frozen, "frozen"), (unused, "never used")];
            let named = others.iter().filter(|row| row.0 != 0 && row.0 != total);
            let named: Vec<String> =
                named.map(|(number, what)| format!("{} {what}", count(*number))).collect();
            text += &match named.is_empty() {
                true => ".".to_owned(),
                false => format!(" ({}).", named.join(", ")),
            };
        }
        if let (Some(hooks), Some(saved)) = (self.hooks_bytes, self.saved_bytes)
            && saved != 0
            && hooks.abs_diff(saved) * 20 > saved
        {
            text += &format!(
                " Hooks on the outputs of modules would count {} of activations; autograd keeps {}.",
                bytes::text(hooks),
                bytes::text(saved)
            );
        }
        if text.is_empty() { text } else { format!("{}\n\n", text.trim_start()) }
    }
}
