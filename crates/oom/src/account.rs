//! What a text says about memory: one account per message or table.

use crate::amount::Amount;
use crate::cause::Cause;
use crate::families::{Family, Memory};
use crate::traceback::Traceback;

/// What kind of message or table it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// PyTorch's allocator on a card of NVIDIA.
    Cuda,
    /// The same on a card of AMD.
    Hip,
    /// The same on a card of Intel.
    Xpu,
    /// PyTorch on an Apple processor, whose memory is the host's.
    Mps,
    /// CUDA itself refused, outside of PyTorch's allocator: no numbers.
    CudaError,
    /// A library below PyTorch, as cuBLAS, cuDNN or NCCL, got no memory: hardly any numbers.
    Library,
    /// Another framework, as Paddle or CuPy.
    Framework,
    /// A program that serves models, as vLLM or llama.cpp.
    Server,
    /// Memory of the host, not of the card.
    Host,
    /// JAX and XLA.
    Jax,
    TensorFlow,
    /// One card in a table of `nvidia-smi`.
    Smi,
    /// `torch.cuda.memory_summary()`.
    Summary,
}

impl Kind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cuda => "cuda",
            Kind::Hip => "hip",
            Kind::Xpu => "xpu",
            Kind::Mps => "mps",
            Kind::CudaError => "cuda_error",
            Kind::Library => "library",
            Kind::Framework => "framework",
            Kind::Server => "server",
            Kind::Host => "host",
            Kind::Jax => "jax",
            Kind::TensorFlow => "tensorflow",
            Kind::Smi => "nvidia_smi",
            Kind::Summary => "memory_summary",
        }
    }

    /// Whether something was refused; tables only say what is in use.
    pub fn is_refusal(self) -> bool {
        !matches!(self, Kind::Smi | Kind::Summary)
    }

    /// Whether PyTorch's caching allocator speaks, whose rounding is known.
    pub fn is_caching_allocator(self) -> bool {
        matches!(self, Kind::Cuda | Kind::Hip | Kind::Xpu)
    }
}

/// The numbers, as far as the text has them. PyTorch's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// What was asked for: of the caching allocator, the segment.
    pub tried: Option<Amount>,
    /// The card's total.
    pub capacity: Option<Amount>,
    /// What the card had left.
    pub free: Option<Amount>,
    pub allocated: Option<Amount>,
    /// Taken from the card by PyTorch.
    pub reserved: Option<Amount>,
    /// Reserved, but not allocated.
    pub unallocated: Option<Amount>,
    /// Allocated in private pools, as of CUDA graphs; part of `allocated`.
    pub private_pools: Option<Amount>,
    /// What this process has of the card, its context included.
    pub this_process: Option<Amount>,
    /// The most PyTorch may take: a memory fraction, or a watermark.
    pub limit: Option<Amount>,
    /// What all processes have of the card.
    pub used: Option<Amount>,
    /// Neither PyTorch's nor free, where the text counts it itself.
    pub other: Option<Amount>,
    /// What a compiled program needs in all, as XLA plans it.
    pub planned: Option<Amount>,
    /// The greatest `allocated` so far.
    pub peak_allocated: Option<Amount>,
    /// The greatest `reserved` so far.
    pub peak_reserved: Option<Amount>,
}

/// A process that a text counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number, as the driver sees it: inside a container another one than the process itself sees.
    pub pid: u64,
    /// Its program; empty if the text does not say.
    pub name: String,
    /// What it has of the card.
    pub memory: Amount,
}

/// A tensor that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub shape: Vec<u64>,
    /// Its type, in the words of the text.
    pub dtype: String,
    /// Bytes of one element; `None` if the type is not known.
    pub element_bytes: Option<u64>,
}

impl Tensor {
    /// All its bytes; `None` if they are not known or beyond all bounds.
    pub fn bytes(&self) -> Option<u64> {
        self.shape.iter().try_fold(self.element_bytes?, |all, size| all.checked_mul(*size))
    }
}

/// A number that is not an amount of memory, as of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// What it counts, as JSON names it.
    pub name: &'static str,
    pub value: u64,
}

/// One message or table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Who writes such messages, and what is known about them.
    pub family: &'static Family,
    /// What it is.
    pub kind: Kind,
    /// Whose memory it was.
    pub memory: Memory,
    /// Whether memory is the reason at all; some messages have other reasons too.
    pub sure: bool,
    /// The reason that the words say, whatever the numbers.
    pub cause: Option<Cause>,
    /// Another error that the same text reports, where memory is only one of the reasons for this one.
    pub other_error: Option<&'static str>,
    /// The rank whose line it is.
    pub rank: Option<u32>,
    /// When it was written, as digits that sort; only to be compared within one log.
    pub time: Option<String>,
    /// The calls that led to it, where the text shows them.
    pub traceback: Option<Traceback>,
    /// The line it begins in, from 1.
    pub line: usize,
    /// How often the text says the same.
    pub times: usize,
    /// The card's number.
    pub device: Option<u32>,
    /// The card's name, as `nvidia-smi` has it; it may end in dots.
    pub card: String,
    /// The library or function that failed; empty if the text does not say.
    pub who: String,
    pub figures: Figures,
    pub counts: Vec<Count>,
    /// Processes it lists.
    pub processes: Vec<Process>,
    /// A tensor it names.
    pub tensor: Option<Tensor>,
    /// What it advises.
    pub advises: Vec<Advised>,
}

/// Advice that messages give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advised {
    /// `expandable_segments:True`, as of torch 2.2.
    ExpandableSegments,
    /// `max_split_size_mb`, up to torch 2.1.
    MaxSplitSize,
    /// `empty_cache`, on cards of Intel.
    EmptyCache,
    /// `PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0`
    Watermark,
}

impl Account {
    /// An account without numbers.
    pub(crate) fn new(family: &'static Family, line: usize) -> Account {
        Account {
            family,
            kind: family.kind,
            memory: family.memory,
            sure: true,
            cause: None,
            other_error: None,
            rank: None,
            time: None,
            traceback: None,
            line,
            times: 1,
            device: None,
            card: String::new(),
            who: String::new(),
            figures: Figures::default(),
            counts: Vec::new(),
            processes: Vec::new(),
            tensor: None,
            advises: Vec::new(),
        }
    }

    /// Whether both say the same, wherever they stand.
    pub(crate) fn says_the_same(&self, other: &Account) -> bool {
        let place = |account: &Account| (account.device, account.rank);
        let whose = |account: &Account| (account.kind, account.memory, account.cause);
        self.family == other.family
            && place(self) == place(other)
            && whose(self) == whose(other)
            && (&self.card, &self.who) == (&other.card, &other.who)
            && (&self.figures, &self.counts) == (&other.figures, &other.counts)
            && (&self.processes, &self.tensor) == (&other.processes, &other.tensor)
            && self.advises == other.advises
    }

    /// Whether the other tells more about the same request, as an allocator below does.
    pub(crate) fn goes_on_in(&self, other: &Account) -> bool {
        let alone = Figures { tried: self.figures.tried, ..Figures::default() };
        self.family == other.family
            && !self.kind.is_caching_allocator()
            && self.figures.tried.is_some()
            && self.figures.tried == other.figures.tried
            && (self.device, self.rank, self.cause) == (other.device, other.rank, other.cause)
            && self.figures == alone
            && self.processes.is_empty()
    }

    /// Whether it is about the host's memory where the family mostly speaks of the GPU's.
    pub(crate) fn is_of_host_instead(&self) -> bool {
        self.memory == Memory::Host && self.family.memory == Memory::Device
    }

    /// Whether it has any number about memory.
    pub fn has_numbers(&self) -> bool {
        self.figures != Figures::default()
            || self.tensor.is_some()
            || !self.counts.is_empty()
            || !self.processes.is_empty()
    }

    /// What was asked for: as the text says it, else the bytes of the tensor it names.
    pub fn tried(&self) -> Option<Amount> {
        let named = || self.tensor.as_ref().and_then(Tensor::bytes).map(Amount::exactly);
        self.figures.tried.or_else(named)
    }
}
