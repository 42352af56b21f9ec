//! Families of messages, one file each: the words that begin one, what its numbers are, what it means,
//! what its maintainers say, and what to do next.
//!
//! A new family is its file, its row in [`TABLE`], and a text with its row in `tests/oom/INDEX.csv`.

use std::fmt;

use crate::account::{Account, Kind};

mod bad_alloc;
mod bitsandbytes;
mod caffe;
mod cpu_allocator;
mod cublas;
mod cuda;
mod cuda_async;
mod cuda_error;
mod cudnn;
mod cupy;
mod dask;
mod deepspeed;
mod directml;
mod faiss;
mod flashinfer;
mod hip;
mod hip_error;
mod jax;
mod julia;
mod killed;
mod kubernetes;
mod level_zero;
mod llama_cpp;
mod lmdeploy;
mod lsf;
mod metal;
mod mps;
mod nccl;
mod npu;
mod numpy;
mod nvml;
mod ollama;
mod onnxruntime;
mod oom_killer;
mod paddle;
mod paging_file;
mod pbs;
mod pinned;
mod ray;
mod reading;
mod rmm;
mod sglang;
mod shared_memory;
mod slurm;
mod stream_executor;
mod tables;
mod tensorflow;
mod tensorrt;
mod tgi;
mod thc;
mod theano;
mod thrust;
mod tpu;
mod transformers;
mod triton;
mod vllm;
mod vulkan;
mod webui;
mod xpu;

pub(crate) use reading::complete;
pub(crate) use tables::{NVIDIA_SMI, SUMMARY};

/// Every family, in the order of the reference. Where two know the same words, the first is meant.
#[rustfmt::skip]
pub const TABLE: &[&Family] = &[
    // PyTorch's allocators.
    &cuda::FAMILY, &cuda_async::FAMILY, &hip::FAMILY, &xpu::FAMILY, &npu::FAMILY, &mps::FAMILY, &metal::FAMILY, &thc::FAMILY,
    &nvml::FAMILY, &directml::FAMILY,
    // Below PyTorch: drivers and libraries.
    &pinned::FAMILY, &thrust::FAMILY, &bitsandbytes::FAMILY, &triton::FAMILY, &nccl::FAMILY, &cublas::FAMILY,
    &cudnn::FAMILY, &level_zero::FAMILY, &vulkan::FAMILY, &hip_error::FAMILY, &transformers::FAMILY,
    &deepspeed::FAMILY, &faiss::FAMILY, &webui::FAMILY,
    // Other frameworks.
    &tpu::FAMILY, &jax::FAMILY, &tensorflow::FAMILY, &directml::TENSORFLOW, &stream_executor::FAMILY, &paddle::FAMILY, &cupy::FAMILY,
    &onnxruntime::FAMILY, &onnxruntime::LIMIT, &theano::FAMILY, &rmm::FAMILY, &julia::FAMILY, &caffe::FAMILY,
    // Programs that serve models.
    &vllm::FAMILY, &vllm::WARM_UP, &flashinfer::FAMILY, &sglang::FAMILY, &sglang::GRAPHS, &tgi::FAMILY, &lmdeploy::FAMILY,
    &tensorrt::FAMILY, &ollama::FAMILY, &llama_cpp::FAMILY, &llama_cpp::COMPUTE,
    // The host.
    &shared_memory::FAMILY, &cpu_allocator::FAMILY, &numpy::FAMILY, &bad_alloc::FAMILY, &paging_file::FAMILY,
    &oom_killer::FAMILY,
    &slurm::FAMILY, &lsf::FAMILY, &pbs::FAMILY, &dask::FAMILY, &kubernetes::FAMILY, &ray::FAMILY, &killed::FAMILY,
    // Whoever passes CUDA's own words on.
    &cuda_error::FAMILY,
    // Tables, where nothing was refused.
    &NVIDIA_SMI, &SUMMARY,
];

/// Whose memory a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// The GPU's.
    Device,
    /// The machine's.
    Host,
    /// The machine's, in `/dev/shm`, which has a limit of its own.
    Shared,
    /// One for processor and GPU, as Apple's.
    Unified,
    /// Inside of a multiprocessor, for one kernel.
    OnChip,
    /// The text does not say.
    NotTold,
}

impl Memory {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Memory::Device => "device",
            Memory::Host => "host",
            Memory::Shared => "shared_memory",
            Memory::Unified => "unified",
            Memory::OnChip => "on_chip",
            Memory::NotTold => "not_told",
        }
    }
}

/// Something that maintainers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    pub says: &'static str,
    /// Where they say it.
    pub source: &'static str,
}

/// Something to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is good for.
    pub why: &'static str,
    /// What to type. `COMMAND` stands for the user's own.
    pub command: String,
}

/// What can be a message of the family: its row is all that is said of it outside of its file.
pub struct Family {
    /// The name in JSON.
    pub id: &'static str,
    /// Who speaks, as a sentence names it.
    pub speaker: &'static str,
    pub kind: Kind,
    pub memory: Memory,
    /// What such a message means, where its numbers do not tell more.
    pub means: &'static str,
    pub facts: &'static [Fact],
    /// It is raised in Python, so the calls in front of it are its own.
    pub(crate) raises: bool,
    pub(crate) heads: &'static [Head],
    pub(crate) fill: fn(&mut Account, &Window<'_>),
    pub(crate) steps: fn(&Account) -> Vec<Step>,
}

impl Family {
    /// What to do next about one of its messages.
    pub fn steps(&self, account: &Account) -> Vec<Step> {
        let is_framework = matches!(account.kind, Kind::Jax | Kind::TensorFlow | Kind::Framework);
        if is_framework && account.is_of_host_instead() {
            return vec![step("what the machine has left", "free -h")];
        }
        (self.steps)(account)
    }
}

impl PartialEq for Family {
    fn eq(&self, other: &Family) -> bool {
        self.id == other.id
    }
}

impl Eq for Family {}

impl fmt::Debug for Family {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.id)
    }
}

/// Words that begin a message, in the form of [`crate::clean::squeeze`].
pub(crate) struct Head {
    pub(crate) words: &'static str,
    /// Closer than this behind a head with a smaller number, it is a part of that message.
    pub(crate) near: usize,
    /// Whether it is a head at this place of its line.
    pub(crate) fits: fn(&Place<'_>) -> bool,
}

/// Where words were found.
pub(crate) struct Place<'a> {
    /// What stands in the lines above.
    pub(crate) above: &'a str,
    /// What stands before them in their line.
    pub(crate) before: &'a str,
    /// They themselves and what follows in their line.
    pub(crate) line: &'a str,
    /// They themselves and all that follows.
    pub(crate) rest: &'a str,
}

impl<'a> Place<'a> {
    /// They themselves and so much that follows.
    fn near(&self, length: usize) -> &'a str {
        self.rest.get(..length).unwrap_or(self.rest)
    }
}

/// Words that always begin a message.
const fn says(words: &'static str) -> Head {
    Head { words, near: 0, fits: |_| true }
}

/// Words that begin a message, if none has begun just before.
const fn also(words: &'static str, near: usize) -> Head {
    Head { words, near, fits: |_| true }
}

/// A message and what stands around it.
pub(crate) struct Window<'a> {
    /// From the head on, up to the next message.
    pub(crate) text: &'a str,
    /// What stands in front of it.
    pub(crate) before: &'a str,
    pub(crate) head: &'static str,
}

/// Nothing but that it is one.
fn nothing(_: &mut Account, _: &Window<'_>) {}

/// Nothing beside what is said to every message about a GPU.
fn no_steps(_: &Account) -> Vec<Step> {
    Vec::new()
}

/// Whose it is after all, where the calls tell more than the words.
pub(crate) fn by_calls(account: &mut Account) {
    let pins = account.traceback.as_ref().is_some_and(|calls| calls.calls("pin_memory"));
    if account.family.id == cuda_error::FAMILY.id && pins {
        account.family = &pinned::FAMILY;
        (account.kind, account.memory) = (pinned::FAMILY.kind, pinned::FAMILY.memory);
    }
}

/// One step that needs no numbers.
fn step(why: &'static str, command: &str) -> Step {
    Step { why, command: command.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_a_name_of_its_own_and_facts_with_a_source() {
        let mut names: Vec<&str> = TABLE.iter().map(|family| family.id).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
        for family in TABLE {
            assert!(!family.means.is_empty(), "{}", family.id);
            for fact in family.facts {
                assert!(fact.source.starts_with("https://"), "{}: {}", family.id, fact.source);
            }
            for head in family.heads {
                let squeezed = head.words.chars().all(|c| {
                    c.is_ascii() && !c.is_ascii_uppercase() && !c.is_whitespace() && c != '|'
                });
                assert!(squeezed && !head.words.is_empty(), "{}: {}", family.id, head.words);
            }
        }
    }
}
