//! What is said to a message beside its numbers: facts, advice, whose calls, and how often it came.

use oom::advice::Remedy;
use oom::{Account, Amount, advise, facts, read, weigh};

fn only(text: &str) -> Account {
    let mut accounts = read(text);
    assert_eq!(accounts.len(), 1, "{text}: {accounts:#?}");
    accounts.remove(0)
}

fn said(text: &str) -> String {
    let account = only(text);
    let cause = weigh(&account).cause;
    facts(&account, cause).iter().map(|fact| fact.says).collect::<Vec<_>>().join("; ")
}

/// `GPU 0 has a total capacity of …`, in GiB.
fn message(who: &str, tried: &str, capacity: &str, free: &str, allocated: &str) -> String {
    format!(
        "{who} out of memory. Tried to allocate {tried} GiB. GPU 0 has a total capacity of {capacity} GiB of which \
         {free} GiB is free. Of the allocated memory {allocated} GiB is allocated by PyTorch, and 0 bytes is reserved \
         by PyTorch but unallocated."
    )
}

#[test]
fn what_is_kept_from_step_to_step_is_looked_for_where_tensors_are_the_reason() {
    let kept = "kept from step to step";
    assert!(said(&message("CUDA", "2.00", "15.00", "0.50", "13.90")).contains(kept));
    assert!(said(&message("HIP", "2.00", "15.00", "0.50", "13.90")).contains(kept));
    let elsewhere = [
        message("CUDA", "2.00", "15.00", "9.00", "5.50"),
        message("CUDA", "16.00", "15.00", "9.00", "5.50"),
        message("CUDA", "2.00", "15.00", "0.50", "0.00")
            + " Process 7 has 14.40 GiB memory in use.",
    ];
    for text in elsewhere {
        assert!(!said(&text).contains(kept), "{text}");
    }
}

#[test]
fn how_much_an_apu_has_is_a_setting() {
    assert!(said(&message("HIP", "16.00", "15.24", "15.09", "0.00")).contains("APU"));
    assert!(!said(&message("HIP", "2.00", "15.24", "0.09", "14.90")).contains("APU"));
    assert!(!said(&message("CUDA", "16.00", "15.24", "15.09", "0.00")).contains("APU"));
}

#[test]
fn segments_that_grow_are_not_on_every_windows() {
    let message = "CUDA out of memory. Tried to allocate 2.87 GiB (GPU 0; 14.76 GiB total capacity; 8.77 GiB already \
                   allocated; 19.75 MiB free; 13.71 GiB reserved in total by PyTorch)";
    let at = |file: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"{file}\", line 3, in <module>\n    run()\n{message}"
        )
    };
    assert!(said(&at("C:\\Users\\user\\train.py")).contains("Windows"));
    assert!(!said(&at("/home/user/train.py")).contains("Windows"));
}

#[test]
fn of_the_hosts_memory_nothing_is_said_about_the_gpu() {
    let tensor = |device: &str| {
        format!(
            "OOM when allocating tensor with shape[9,9] and type float on /job:a/device:{device}:0 by allocator"
        )
    };
    assert!(said(&tensor("GPU")).contains("GPU"));
    assert_eq!(said(&tensor("CPU")), "");
    let steps = only(&tensor("CPU"));
    let steps = steps.family.steps(&steps);
    assert!(steps.iter().all(|step| !step.command.contains("GPU")), "{steps:?}");
}

#[test]
fn the_line_that_raises_is_no_second_message() {
    let source = "File \"/a/vllm/worker.py\", line 493, in check\n    raise ValueError(\"No available memory for the cache \
                  blocks. \"\n";
    let text =
        format!("{source}ValueError: No available memory for the cache blocks. Try increasing it");
    assert_eq!(only(&text).times, 1);
    // A log that was cut there has nothing else.
    assert_eq!(only(source).family.id, "vllm");
}

#[test]
fn calls_below_a_message_are_not_those_of_the_message_before() {
    let message = |tried: &str| {
        format!(
            "RuntimeError: MPS backend out of memory (MPS allocated: 9.00 GB, other allocations: 1.00 GB, max allowed: \
             10.20 GB). Tried to allocate {tried} GB on private pool.\n"
        )
    };
    let calls = "Stack (most recent call last):\n  File \"/Users/user/train.py\", line 59, in main\n    run()\n";
    let accounts = read(&format!("{}{}{calls}", message("1.16"), message("0.58")));
    let lines: Vec<_> = accounts
        .iter()
        .map(|account| account.traceback.as_ref().and_then(|calls| Some(calls.user()?.line)))
        .collect();
    assert_eq!(lines, [None, Some(59)]);
}

#[test]
fn statistics_in_front_of_a_tensor_that_found_no_place_are_those_of_its_pool() {
    let text = "bfc_allocator.cc:647] Stats: \nLimit: 7441717658\nInUse: 6647456000\nMaxInUse: 6647456000\n\
                op_kernel.cc:1401] OOM when allocating tensor with shape[1,32,368,368,368] and type float on \
                /job:localhost/device:GPU:0 by allocator GPU_0_bfc";
    let account = only(text);
    assert_eq!(account.figures.limit, Some(Amount::exactly(7_441_717_658)));
    assert_eq!(weigh(&account).cause.name(), "request_too_large");
}

#[test]
fn segments_that_grow_are_not_advised_where_they_gain_nothing() {
    let advised = |text: &str| {
        let account = only(text);
        let advice = advise(&account, &weigh(&account));
        advice
            .iter()
            .find(|advice| advice.remedy == Remedy::UseReserved)
            .map(|advice| advice.helps.name())
    };
    let without_free = |allocated: &str| {
        format!(
            "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 15.56 GiB total capacity; {allocated} already \
             allocated; {allocated} reserved in total by PyTorch)"
        )
    };
    // Pieces below the length of a page, and a card of which PyTorch has nearly all.
    assert_eq!(advised(&without_free("990.00 MiB")), None);
    assert_eq!(advised(&without_free("15.50 GiB")), Some("cannot_help"));
    // XPU's own message advises something else.
    assert_eq!(advised(&message("XPU", "0.50", "16.50", "0.00", "16.40")), None);
}
