//! Recordings written by hand: what needs two cards, and files that lie.

use allocator::{Settings, replay};
use diagnose::{Finding, diagnose};
use recording::text;

/// A wrapper of a model, what it makes for its replicas, and a layer of the model.
///
/// ```text
/// 0x1000000  weight     8 MiB
/// 0x2000000  replicas  16 MiB  by the wrapper, no operator
/// 0x4000000  saved     32 MiB  by the layer
/// ```
const REPLICAS: &str = r#"
torch 2.15.0
text 1 "train.py"
text 2 "CLASS"
text 3 "module.fc"
text 4 "Linear"
text 5 "linear"
text 6 "module.fc.weight"
text 7 "AddmmBackward0.mat1 in module.fc"
text 8 "SHAPE"
frame 0 file 1 function 0 line 7
stack 0 frame 0
owner 0 module 0 operator 0 node 0
owner 1 module 3 operator 0 node 0 stack 0
owner 2 module 2 operator 0 node 0 stack 0
owner 3 module 3 operator 5 node 0 stack 0
module 0 path 2 class 2
module 1 path 3 class 4
phase construction step 1
alloc 0x1000000 8388608 stream 0 owner 1
name 0x1000000 weights text 6
phase forward step 1
alloc 0x2000000 16777216 stream 0 owner 2
alloc 0x4000000 33554432 stream 0 owner 3
name 0x4000000 activations text 7
tensor 0x4000000 text 8
"#;

fn findings(text: &str) -> (Vec<Finding>, u64) {
    let recording = text::recording(text).unwrap();
    let anatomy = anatomy::dissect(&recording, &replay(&recording, &Settings::default()));
    (diagnose(&anatomy, anatomy.out_of_memory.is_some()), anatomy.allocated_peak.allocated)
}

fn wrapped_in(class: &str, shape: &str) -> (Vec<Finding>, u64) {
    findings(&REPLICAS.replace("CLASS", class).replace("SHAPE", shape))
}

#[test]
fn replicas_of_data_parallel_are_found() {
    let (all, allocated) = wrapped_in("DataParallel", "float32[4096, 2048]");
    let [found] = &all.iter().filter(|f| f.id == "data-parallel").collect::<Vec<_>>()[..] else {
        panic!("{all:?}")
    };
    assert_eq!((found.bytes, found.counted), (16 << 20, true));
    assert_eq!((found.evidence[0].file.as_str(), found.evidence[0].line), ("train.py", 7));
    assert_eq!(
        (found.remedies[0].id, found.remedies[0].label.name()),
        ("distributed", "numerically equal")
    );
    let counted: u64 = all.iter().filter(|f| f.counted).map(|f| f.bytes).sum();
    assert_eq!((counted, allocated), (56 << 20, 56 << 20));
}

/// Of convolutions, they have the form of kernels: no maps, and no matter of the batch.
#[test]
fn gradients_of_replicas_are_no_maps() {
    let passing = r#"text 9 "ConvolutionBackward0"
text 10 "float32[512, 256, 4, 4]"
owner 4 module 3 operator 0 node 9 stack 0
tensor 0x1000000 text 10
phase backward step 1
alloc 0x8000000 8388608 stream 0 owner 4
tensor 0x8000000 text 10
"#;
    let text = format!("{}{passing}", REPLICAS.replace("SHAPE", "float32[4096, 2048]"));
    let bytes = |class: &str, id: &str| -> u64 {
        let (all, _) = findings(&text.replace("CLASS", class));
        all.iter().filter(|finding| finding.id == id).map(|finding| finding.bytes).sum()
    };
    assert_eq!(bytes("DataParallel", "data-parallel"), 24 << 20);
    assert_eq!(bytes("DataParallel", "feature-maps"), 0);
    assert_eq!(bytes("Net", "feature-maps"), 8 << 20);
}

#[test]
fn other_wrappers_are_not_accused() {
    let (all, _) = wrapped_in("DistributedDataParallel", "float32[4096, 2048]");
    assert!(all.iter().all(|finding| finding.id != "data-parallel"), "{all:?}");
    let ids: Vec<&str> = all.iter().map(|finding| finding.id).collect();
    assert_eq!(ids[..3], ["activations", "gradient-buckets", "model-state"]);
}

#[test]
fn shapes_that_no_memory_holds_are_survived() {
    for shape in ["float32[18446744073709551615, 18446744073709551615]", "float32[0, 0, 0]", "x[]"]
    {
        let (all, allocated) = wrapped_in("DataParallel", shape);
        let counted: u64 = all.iter().filter(|f| f.counted).map(|f| f.bytes).sum();
        assert!(counted <= allocated, "{shape}");
    }
}

#[test]
fn a_refused_request_is_counted_with_what_is_alive() {
    let refused = format!("{REPLICAS}oom 98000000000 free 1000000 stream 0\n");
    let (all, allocated) = findings(&refused.replace("CLASS", "Net"));
    let counted: u64 = all.iter().filter(|f| f.counted).map(|f| f.bytes).sum();
    assert!(98_000_000_000 <= counted && counted <= allocated + 98_000_000_000, "{counted}");
    let what = |finding: &Finding| finding.evidence.first().map(|row| row.what.clone());
    assert_eq!(what(&all[0]).as_deref(), Some("the request that failed"));
}

#[test]
fn buckets_of_deepspeed_are_a_setting() {
    let bucket = "name 0x2000000 communication text 9\nphase backward step 1\n";
    let text = REPLICAS.replace("CLASS", "Engine").replace("SHAPE", "float32[4096, 2048]");
    let named = format!("{text}{bucket}");
    let explained = |name: &str| {
        let text = named.replace("\nframe 0", &format!("\ntext 9 \"{name}\"\nframe 0"));
        let (all, _) = findings(&text);
        let found = all.iter().find(|finding| finding.id == "collectives");
        found.unwrap_or_else(|| panic!("{all:?}")).explanation.clone()
    };
    let of_deepspeed = explained("gradient buckets (DeepSpeed)");
    assert!(of_deepspeed.contains("`reduce_bucket_size`"), "{of_deepspeed}");
    assert!(!of_deepspeed.contains("largest unit"), "{of_deepspeed}");
    assert!(explained("all-gather of layers.0").contains("largest unit"));
}

#[test]
fn what_takes_little_is_not_the_cause() {
    let text = REPLICAS.replace("CLASS", "DataParallel").replace("SHAPE", "float32[4096, 2048]");
    let recording = text::recording(&text).unwrap();
    let anatomy = anatomy::dissect(&recording, &replay(&recording, &Settings::default()));
    let told = diagnose::diagnose(&anatomy, false);
    let named: Vec<(&str, u64)> =
        diagnose::suspects(&anatomy, false, &told).iter().map(|it| (it.name, it.bytes)).collect();
    // Weights are a seventh of it.
    assert!(!named.iter().any(|(name, _)| *name == "parameters"), "{named:?}");
    assert!(named.contains(&("attention matrices", 0)), "{named:?}");
    // Nobody counted parameters: the run was cut before anything of the model's state had a name.
    assert!(!named.iter().any(|(name, _)| *name == "optimizer state"), "{named:?}");
    // What a cause is about is no alibi, however little of the peak it is.
    let blamed = |name: &str| diagnose::is_blamed(name, &told, anatomy.allocated_peak.allocated);
    assert!(!named.iter().any(|(name, _)| blamed(name)), "{named:?} {told:?}");
}

/// Of a snapshot it is not always known which library asked, nor then whether it keeps what it got.
#[test]
fn scratch_memory_is_given_back_kept_or_not_known() {
    let found = |name: &str| {
        let number = if name.is_empty() { 0 } else { 7 };
        let text = REPLICAS
            .replace("AddmmBackward0.mat1", if name.is_empty() { "nothing" } else { name })
            .replace(" in module.fc\"", "\"")
            .replace("activations text 7", &format!("workspace text {number}"))
            .replace("CLASS", "Sequential")
            .replace("SHAPE", "uint8[33554432]");
        let (all, _) = findings(&text);
        let found = all.into_iter().find(|found| found.id == "workspace").expect("a finding");
        (found.title, found.explanation)
    };
    let (title, explanation) = found("cuBLAS workspace");
    assert_eq!(title, "scratch memory: cuBLAS workspace");
    assert!(explanation.contains("kept for all further ones"), "{explanation}");
    let (_, explanation) = found("cuDNN convolution");
    assert!(explanation.contains("given back right after."), "{explanation}");
    let (title, explanation) = found("");
    assert_eq!(title, "scratch memory of a library");
    assert!(explanation.contains("or kept by the library"), "{explanation}");
}

/// Blocks that each leave something without a name, as TorchScript does, and a head that runs.
const LEFT: &str = r#"
torch 2.15.0
text 1 "train.py"
text 2 "blocks.0"
text 3 "blocks.1"
text 4 "blocks.2"
text 5 "head"
text 6 "Linear"
text 7 "head.weight"
frame 0 file 1 function 0 line 7
stack 0 frame 0
owner 0 module 0 operator 0 node 0
owner 1 module 2 operator 0 node 0 stack 0
owner 2 module 3 operator 0 node 0 stack 0
owner 3 module 4 operator 0 node 0 stack 0
owner 4 module 5 operator 0 node 0 stack 0
module 0 path 2 class 6
module 1 path 3 class 6
module 2 path 4 class 6
module 3 path 5 class 6
phase construction step 1
alloc 0x1000000 8388608 stream 0 owner 4
name 0x1000000 weights text 7
phase forward step 1
alloc 0x2000000 8388608 stream 0 owner 1
alloc 0x4000000 8388608 stream 0 owner 2
alloc 0x6000000 8388608 stream 0 owner 3
alloc 0x8000000 8388608 stream 0 owner 4
"#;

#[test]
fn what_modules_have_left_is_not_the_current_layers() {
    let said = |text: &str| {
        let (all, _) = findings(text);
        let rows = all.into_iter().filter(|finding| finding.id == "activations");
        rows.map(|finding| format!("{}: {}", finding.title, finding.explanation))
            .collect::<Vec<_>>()
    };
    let of = |all: &[String], what: &str| all.iter().find(|text| text.contains(what)).cloned();
    let all = said(LEFT);
    let blocks = of(&all, "blocks").unwrap_or_else(|| panic!("{all:?}"));
    assert!(blocks.contains("24.0 MiB: the modules that made them have returned"), "{blocks}");
    assert!(!blocks.contains("current layer"), "{blocks}");
    let head = of(&all, "head").unwrap_or_else(|| panic!("{all:?}"));
    assert!(head.contains("8.0 MiB: temporaries of the current layer"), "{head}");
    // Two may have made what the head is given.
    let two = said(&LEFT.replace("alloc 0x6000000 8388608 stream 0 owner 3\n", ""));
    assert!(of(&two, "have returned").is_none(), "{two:?}");
}
