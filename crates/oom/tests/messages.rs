//! Texts that people posted, read and compared with what was read in them by eye.
//!
//! `tests/oom/INDEX.csv` has a row per text: where it comes from, whose message it is, whose memory, the rank, the
//! user's line that asked, the reason, and its numbers in bytes.

use std::fs;
use std::path::{Path, PathBuf};

use oom::{Amount, Figures, advise, read, requests, weigh};

/// A row of the index, by the names of its columns.
struct Row(Vec<(String, String)>);

impl Row {
    fn get(&self, column: &str) -> &str {
        let cell = self.0.iter().find(|(name, _)| name == column);
        cell.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no column {column}"))
    }

    fn bytes(&self, column: &str) -> Option<u64> {
        let cell = self.get(column);
        (!cell.is_empty()).then(|| cell.parse().unwrap())
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oom")
}

fn index() -> Vec<Row> {
    let text = fs::read_to_string(folder().join("INDEX.csv")).unwrap();
    let mut lines = text.lines();
    let titles: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    let row =
        |line: &str| Row(titles.iter().cloned().zip(line.split(',').map(str::to_owned)).collect());
    lines.map(row).collect()
}

fn figures(figures: &Figures) -> [(&'static str, Option<Amount>); 14] {
    [
        ("tried", figures.tried),
        ("capacity", figures.capacity),
        ("free", figures.free),
        ("allocated", figures.allocated),
        ("reserved", figures.reserved),
        ("unallocated", figures.unallocated),
        ("private_pools", figures.private_pools),
        ("this_process", figures.this_process),
        ("limit", figures.limit),
        ("used", figures.used),
        ("other", figures.other),
        ("peak_allocated", figures.peak_allocated),
        ("peak_reserved", figures.peak_reserved),
        ("planned", figures.planned),
    ]
}

/// What of a text was not read as by eye.
fn differences(row: &Row) -> Vec<String> {
    let file = row.get("file");
    let accounts = read(&fs::read_to_string(folder().join(file)).unwrap());
    let mut wrong = Vec::new();
    let mut compare = |what: &str, found: String| {
        let expected = row.get(what);
        if found != expected {
            wrong.push(format!("{file}: {what} is `{found}`, not `{expected}`"));
        }
    };
    compare("accounts", accounts.len().to_string());
    let Some(account) = accounts.first() else { return wrong };
    let words = |words: Vec<String>| words.join(" ");
    let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
    compare("family", account.family.id.to_owned());
    compare("form", account.kind.name().to_owned());
    compare("memory", account.memory.name().to_owned());
    compare("sure", if account.sure { "yes" } else { "no" }.to_owned());
    compare("device", number(account.device));
    compare("rank", number(account.rank));
    let at = account.traceback.as_ref().and_then(|traceback| traceback.user());
    compare("at", at.map(|frame| format!("{}:{}", frame.file, frame.line)).unwrap_or_default());
    compare("processes", words(account.processes.iter().map(|p| p.pid.to_string()).collect()));
    compare(
        "counts",
        words(account.counts.iter().map(|it| format!("{}={}", it.name, it.value)).collect()),
    );
    compare("cause", weigh(account).cause.name().to_owned());
    for (name, amount) in figures(&account.figures) {
        let expected = row.bytes(name);
        let is_right = match (amount, expected) {
            (Some(amount), Some(expected)) => {
                let open = amount.high - amount.low;
                // `926. GiB` and `11.8 / 12.3 GB` are the coarsest of them all.
                // The web UI and Ollama write one digit of a GB.
                let is_coarse = ["webui", "ollama"].contains(&row.get("family"));
                let least = if is_coarse { 108 << 20 } else { 22 << 20 };
                amount.contains(expected) && (open <= least || open <= expected / 100)
            }
            (None, None) => true,
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{file}: {name} is {amount:?}, not {expected:?}"));
        }
    }
    wrong
}

#[test]
fn every_text_is_read_as_by_eye() {
    let rows = index();
    assert!(340 <= rows.len());
    let wrong: Vec<String> = rows.iter().flat_map(differences).collect();
    assert!(wrong.is_empty(), "{} of {} texts:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn every_family_has_a_text() {
    let rows = index();
    // Words that were only read in their source; no public text was found that may stand here.
    let without = ["hip_error", "npu", "paging_file"];
    for family in oom::families::TABLE {
        let has_text = rows.iter().any(|row| row.get("family") == family.id);
        assert!(has_text || without.contains(&family.id), "{}", family.id);
    }
}

#[test]
fn the_parts_of_a_card_sum_to_it() {
    for row in index() {
        let file = row.get("file");
        for account in read(&fs::read_to_string(folder().join(file)).unwrap()) {
            let balance = weigh(&account);
            let Some(card) = balance.ledger.first().filter(|row| row.name == "card") else {
                continue;
            };
            let parts = balance.ledger.iter().filter(|row| row.depth == 1).map(|row| row.amount);
            let sum = parts.reduce(Amount::plus).unwrap_or(Amount::exactly(0));
            let whole = account.figures.free.is_some()
                && (account.figures.reserved.is_some() || account.figures.used.is_some());
            if whole && !balance.spilled {
                let meets = sum.low <= card.amount.high && card.amount.low <= sum.high;
                assert!(meets, "{file}: {sum:?} is not {:?}: {:#?}", card.amount, balance.ledger);
            }
        }
    }
}

#[test]
fn advice_never_promises_what_the_numbers_do_not_hold() {
    use oom::Helps;
    for row in index() {
        let file = row.get("file");
        for account in read(&fs::read_to_string(folder().join(file)).unwrap()) {
            let balance = weigh(&account);
            for advice in advise(&account, &balance) {
                let (Some(tried), Some(reach)) = (account.tried(), advice.reach) else { continue };
                use oom::advice::Remedy;
                if matches!(advice.remedy, Remedy::AskForLess | Remedy::EmptyCache) {
                    continue;
                }
                match advice.helps {
                    Helps::Can => assert!(tried.high <= reach.low, "{file}: {advice:?}"),
                    Helps::Cannot => assert!(reach.high < tried.low, "{file}: {advice:?}"),
                    Helps::Open | Helps::Beside => {}
                }
            }
        }
    }
}

#[test]
fn guesses_have_the_size_that_was_tried() {
    let mut guessed = 0;
    for row in index() {
        for account in read(&fs::read_to_string(folder().join(row.get("file"))).unwrap()) {
            let Some(tried) = account.tried() else { continue };
            let asked = requests(tried, account.kind);
            for candidate in oom::guess(&asked) {
                let elements = candidate.shape.elements().unwrap();
                assert_eq!(elements * candidate.dtype.bytes, candidate.bytes);
                assert!(asked.iter().any(|range| range.contains(candidate.bytes)));
                guessed += 1;
            }
        }
    }
    assert!(10 < guessed);
}

/// A text as wrappers leave it: labels before its lines, lines broken anywhere, colours, escapes, boxes.
fn wrapped(text: &str) -> Vec<(&'static str, String)> {
    let broken = |width: usize, before: &str, after: &str| -> String {
        let chars: Vec<char> = text.chars().filter(|c| *c != '\n').collect();
        let line = |part: &[char]| format!("{before}{}{after}\n", part.iter().collect::<String>());
        chars.chunks(width).map(line).collect()
    };
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    vec![
        ("torchrun", broken(61, "[rank12]: ", "")),
        ("a narrow terminal", broken(37, "", "")),
        ("a box", broken(58, "│ ", " │")),
        ("ray", broken(80, "(WorkerDict pid=4242, ip=10.1.2.3) ", "")),
        ("logging", broken(90, "2025-06-05 06:18:13,120 - ERROR - [train.py:12] ", "")),
        ("colours", text.replace(' ', " \u{1b}[1;31m").replace("GiB", "\u{1b}[0mGiB")),
        ("JSON", format!("{{\"level\": \"error\", \"message\": \"{escaped}\"}}")),
        ("Windows", text.replace('\n', "\r\n")),
        ("a quote", broken(70, "> ", "")),
    ]
}

#[test]
fn wrappers_change_no_number() {
    for row in index() {
        let file = row.get("file");
        let form = row.get("form");
        // A bare word must stand alone, and a label in front of a shell's line is another rank's.
        let is_of_lines = ["killed", "kubernetes", "slurm", "nccl"].contains(&row.get("family"));
        let is_table = form == "nvidia_smi" || form == "memory_summary";
        if row.get("accounts") != "1" || is_table || is_of_lines {
            continue;
        }
        let text = fs::read_to_string(folder().join(file)).unwrap();
        // Broken elsewhere, labels of its own would stand inside of its lines.
        if text.contains("pid=")
            || text.contains("ERROR")
            || text.contains("-1  | ")
            || text.contains(" E ggml")
        {
            continue;
        }
        let bare = &read(&text)[0];
        for (wrapper, text) in wrapped(&text) {
            let accounts = read(&text);
            let found = accounts.first().unwrap_or_else(|| panic!("{file} in {wrapper}:\n{text}"));
            assert_eq!(found.figures, bare.figures, "{file} in {wrapper}:\n{text}");
            assert_eq!(
                (found.family, found.memory),
                (bare.family, bare.memory),
                "{file} in {wrapper}"
            );
            assert_eq!(
                (found.kind, &found.processes),
                (bare.kind, &bare.processes),
                "{file} in {wrapper}"
            );
            assert_eq!(
                (&found.tensor, &found.advises),
                (&bare.tensor, &bare.advises),
                "{file} in {wrapper}"
            );
        }
    }
}

/// Forms of messages that no text above has: the words are the programs' own, the numbers are made up.
const FORMS: &[(&str, &str, &str)] = &[
    ("zsh: killed     python3 webui.py --no-half", "killed", "host_memory"),
    ("[1]    4242 killed     python train.py", "killed", "host_memory"),
    (
        "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)",
        "killed",
        "host_memory",
    ),
    ("srun: error: o0616: task 0: Out Of Memory", "slurm", "host_memory"),
    (
        "slurmstepd: error: Job 12 exceeded memory limit (4200000 > 4194304), being killed",
        "slurm",
        "host_memory",
    ),
    ("      Reason:       OOMKilled\n      Exit Code:    137", "kubernetes", "host_memory"),
    (
        "OSError: [WinError 1455] The paging file is too small for this operation to complete",
        "paging_file",
        "host_memory",
    ),
    (
        "Memory cgroup out of memory: Killed process 4242 (python) total-vm:9kB, anon-rss:8kB",
        "oom_killer",
        "host_memory",
    ),
    ("RuntimeError: HIP error: out of memory", "hip_error", "not_told"),
    (
        "NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 1.00 GiB total capacity;",
        "npu",
        "larger_than_card",
    ),
    ("CUDA error: out of memory\n  in function alloc at ggml-cuda.cu:503", "llama_cpp", "not_told"),
    (
        "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 8589934592\n\
         llama_kv_cache_init: failed to allocate buffer for kv cache",
        "llama_cpp",
        "host_memory",
    ),
    (
        "ggml_gallocr_reserve_n: failed to allocate CPU buffer of size 8589934592",
        "llama_cpp_compute",
        "host_memory",
    ),
    (
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 900.00 MiB on device 0: cudaMalloc failed: out of memory\n\
         ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 943718400\n\
         sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism",
        "llama_cpp_compute",
        "warning",
    ),
    (
        "vulkan_buffer.cc:61: Vulkan Error, code=-2: VK_ERROR_OUT_OF_DEVICE_MEMORY",
        "vulkan",
        "not_told",
    ),
    ("Native API returns: 20 (UR_RESULT_ERROR_DEVICE_LOST)", "level_zero", "not_told"),
    (
        "[TensorRT-LLM][ERROR] CUDA runtime error in cudaMalloc(ptr, n): out of memory (/a/tensorrt_llm/b.h:1)",
        "tensorrt",
        "not_told",
    ),
    (
        "Out of memory error on GPU 3. Cannot allocate 9.5MB GPU memory, available memory is 7.25MB.",
        "paddle",
        "not_told",
    ),
    (
        "Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM",
        "transformers",
        "not_told",
    ),
    (
        "bfc_allocator.cc:239] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.46GiB with \
      freed_by_count=0. The caller indicates that this is not a failure, but",
        "tensorflow",
        "warning",
    ),
    (
        "File \"a/torch/utils/data/_utils/pin_memory.py\", line 58, in pin_memory\n  \
      RuntimeError: CUDA error: out of memory",
        "pinned",
        "host_memory",
    ),
    (
        "RuntimeError: [enforce fail at event_gpu.cc:17] error == cudaSuccess. 2 vs 0. Error at: event_gpu.cc:17: out of \
         memory",
        "caffe",
        "not_told",
    ),
    (
        "EnforceNotMet: enforce allocating <= available failed, 10513462067 > 1369702144\nat [gpu_info.cc:89]",
        "paddle",
        "not_told",
    ),
    (
        "ibvwrap.cc:190 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory",
        "pinned",
        "host_memory",
    ),
    (
        "alloc.h:102 NCCL WARN Cuda failure 1 'invalid argument'\nNCCL Error 1: unhandled cuda error (run with",
        "nccl",
        "not_memory",
    ),
    (
        "mxnet-build/mshadow/stream_gpu-inl.h:184: Check failed: e == cudaSuccess: CUDA: out of memory",
        "cuda_error",
        "not_told",
    ),
    (
        "RuntimeError: std::bad_alloc: out_of_memory: RMM failure at:pool_memory_resource.hpp:196: Maximum pool \
         size exceeded",
        "rmm",
        "not_told",
    ),
    (
        "MLX: [metal::malloc] Attempting to allocate 18432000000 bytes which is greater than the maximum \
      allowed buffer size of 17179869184 bytes.",
        "metal",
        "request_too_large",
    ),
];

#[test]
fn other_forms_of_the_families_are_known() {
    for &(text, family, cause) in FORMS {
        let accounts = read(text);
        let found: Vec<&str> = accounts.iter().map(|account| account.family.id).collect();
        assert_eq!(found.first(), Some(&family), "{text}: {found:?}");
        assert_eq!(weigh(&accounts[0]).cause.name(), cause, "{text}");
    }
}

/// Texts of other errors, whose words are near: nothing is made of them.
#[test]
fn other_errors_are_no_messages() {
    let texts = [
        // HabanaAI/vllm-fork#484, MhLiao/DB#94, NVIDIA/cudf#829.
        "graph.cpp: 599Graph compile failed. synStatus=synStatus 26 [Generic failure]. compile",
        "RuntimeError: DataLoader worker (pid 25902) is killed by signal: Segmentation fault",
        "ERROR:Call to cuMemcpyHtoD results in CUDA_ERROR_INVALID_VALUE",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "RuntimeError: CUDA error: device-side assert triggered",
        "bfc_allocator.cc:246] tried to allocate 0 bytes",
        "CUDNN_BACKEND_TENSOR_DESCRIPTOR cudnnFinalize failed cudnn_status: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED",
        "ggml_allocr_alloc: not enough space in the buffer (needed 409600000, largest block available 339804192)",
    ];
    for text in texts {
        assert_eq!(read(text), [], "{text}");
    }
}

/// XLA says what was tried, and its allocator below what it had.
#[test]
fn an_allocator_below_tells_more_about_the_same_request() {
    let text = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 21474836480 bytes.\n\
                external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying \
                to allocate 20.00GiB (rounded to 21474836480)\nStats: \nLimit: 31789023232\nInUse: 10737418240\n\
                MaxInUse: 12737418240\n";
    let accounts = read(text);
    assert_eq!(accounts.len(), 1, "{accounts:#?}");
    assert_eq!(accounts[0].figures.limit.map(Amount::middle), Some(31_789_023_232));
    assert_eq!(weigh(&accounts[0]).cause.name(), "request_too_large");
}
