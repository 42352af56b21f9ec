//! Out-of-memory messages in a squeezed text: where they begin, and who wrote them.

use crate::account::{Account, Kind};
use crate::clean::Squeezed;
use crate::{device, elsewhere};

/// What begins a message, and what it is then.
const HEADS: [(&str, Kind); 32] = [
    ("cudaoutofmemory", Kind::Cuda),
    ("hipoutofmemory", Kind::Hip),
    ("xpuoutofmemory", Kind::Xpu),
    ("mpsbackendoutofmemory", Kind::Mps),
    ("allocationondevice", Kind::Cuda),
    ("triedtoallocate", Kind::Cuda),
    ("totalcapacity;", Kind::Cuda),
    ("cudaerror:outofmemory", Kind::CudaError),
    ("hiperror:outofmemory", Kind::CudaError),
    ("cudaruntimeerror(2):outofmemory", Kind::CudaError),
    ("cuda_error_out_of_memory", Kind::CudaError),
    ("cudaerrormemoryallocation", Kind::CudaError),
    ("cublas_status_alloc_failed", Kind::Library),
    ("cublas_status_not_initialized", Kind::Library),
    ("cudnn_status_alloc_failed", Kind::Library),
    ("cudnn_status_not_initialized", Kind::Library),
    ("cusolver_status_alloc_failed", Kind::Library),
    ("cusparse_status_alloc_failed", Kind::Library),
    ("defaultcpuallocator:", Kind::Host),
    ("unabletoallocate", Kind::Host),
    ("insufficientsharedmemory(shm)", Kind::Host),
    ("outofmemory:killedprocess", Kind::Host),
    ("oom_killevent", Kind::Host),
    ("oom-killevent", Kind::Host),
    ("cgroupout-of-memoryhandler", Kind::Host),
    ("nodewasrunninglowonmemory", Kind::Host),
    ("noderunninglowonmemory", Kind::Host),
    ("outofmemorywhiletryingtoallocate", Kind::Jax),
    ("outofmemoryallocating", Kind::Jax),
    ("failedtoallocaterequestfor", Kind::Jax),
    ("ranoutofmemorytryingtoallocate", Kind::Jax),
    ("oomwhenallocatingtensorwithshape", Kind::TensorFlow),
];

/// The longest message: PyTorch lists every process of the card.
const LONGEST: usize = 4000;

/// `Tried to allocate` this far behind the head belongs to it.
const NEAR: usize = 160;

/// Every message, in order.
pub(crate) fn read(squeezed: &Squeezed) -> Vec<Account> {
    let text = squeezed.text.as_str();
    let heads = heads(text);
    let mut accounts = Vec::new();
    for (index, (at, head, kind)) in heads.iter().enumerate() {
        let next = heads.get(index + 1).map_or(text.len(), |next| next.0);
        let end = next.min(at + LONGEST).min(text.len());
        // An amount may stand before what names it: `(GPU 0; 10.76 GiB total capacity;`.
        let begin = if *head == "totalcapacity;" { at.saturating_sub(24) } else { *at };
        let window = &text[begin..end];
        let mut account = Account::new(*kind, squeezed.line(*at));
        match kind {
            Kind::Cuda | Kind::Hip | Kind::Xpu => device::fill(&mut account, window),
            Kind::Mps => device::fill_mps(&mut account, window),
            Kind::Host => elsewhere::fill_host(&mut account, window),
            Kind::Jax => elsewhere::fill_jax(&mut account, window),
            Kind::TensorFlow => elsewhere::fill_tensorflow(&mut account, window),
            _ => account.who = who(head),
        }
        // Prose uses these words too; a message has a number.
        let is_bare = match *head {
            "triedtoallocate" | "totalcapacity;" => true,
            "allocationondevice" => !window.contains("wouldexceedallowedmemory"),
            "unabletoallocate" => account.tensor.is_none(),
            _ => false,
        };
        if !is_bare || account.figures.tried.is_some() || account.figures.capacity.is_some() {
            accounts.push(account);
        }
    }
    accounts
}

/// Where messages begin, in order. What stands inside a message begins none.
fn heads(text: &str) -> Vec<(usize, &'static str, Kind)> {
    let mut found: Vec<(usize, &str, Kind)> = Vec::new();
    for (head, kind) in HEADS {
        found.extend(text.match_indices(head).map(|(at, _)| (at, head, kind)));
    }
    found.sort_by_key(|(at, head, _)| (*at, std::cmp::Reverse(head.len())));
    let mut heads: Vec<(usize, &str, Kind)> = Vec::new();
    for (at, head, kind) in found {
        let inside = heads.last().is_some_and(|(before, last, of)| {
            let near = at - before < NEAR;
            match head {
                // A host or Mac message says `tried to allocate` as well.
                "triedtoallocate" => {
                    near && *last != "triedtoallocate" && *last != "totalcapacity;"
                }
                "totalcapacity;" => at - before < NEAR * 2 && of.is_caching_allocator(),
                // `CUDA error: out of memory … Search for cudaErrorMemoryAllocation`
                "cudaerrormemoryallocation" => near,
                // `Detected 1 oom-kill event(s) … by the cgroup out-of-memory handler`
                "cgroupout-of-memoryhandler" => near && last.starts_with("oom"),
                "outofmemorywhiletryingtoallocate" => near && *last == "mpsbackendoutofmemory",
                _ => false,
            }
        });
        if !inside {
            heads.push((at, head, kind));
        }
    }
    heads
}

/// The library of a status code.
fn who(head: &str) -> String {
    let names = [
        ("cublas", "cuBLAS"),
        ("cudnn", "cuDNN"),
        ("cusolver", "cuSOLVER"),
        ("cusparse", "cuSPARSE"),
    ];
    let name =
        names.iter().find(|(start, _)| head.starts_with(start)).map_or("CUDA", |name| name.1);
    match head.ends_with("not_initialized") {
        true => format!("{name} (not initialized)"),
        false => name.to_owned(),
    }
}
