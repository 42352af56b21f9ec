//! Whatever a recording says, a diagnosis stands: it counts no byte twice and names what it knows.

use allocator::{Settings, replay};
use anatomy::Anatomy;
use diagnose::{Whole, detectors, diagnose};
use proptest::collection::vec;
use proptest::prelude::*;
use recording::{Category, Event, Mark, Module, Owner, OwnerId, Phase, Recording, TextId};

/// Modules with their classes, operators, nodes, names and shapes that detectors look for.
const MODULES: [(&str, &str); 8] = [
    ("", ""),
    ("Net", "Net"),
    ("blocks.0.attn", "MultiheadAttention"),
    ("blocks.1.mlp", "Linear"),
    ("0", "Conv2d"),
    ("head", "Linear"),
    ("DataParallel", "DataParallel"),
    ("a..b", ""),
];
const OPERATORS: [&str; 12] = [
    "",
    "conv2d",
    "linear",
    "softmax",
    "im2col",
    "one_hot",
    "clone",
    "cat",
    "interpolate",
    "cdist",
    "cross_entropy_loss",
    "_foreach_sqrt",
];
const NODES: [&str; 4] = ["", "SoftmaxBackward0", "ConvolutionBackward0", "BroadcastBackward"];
const NAMES: [&str; 9] = [
    "fc.weight",
    "gradient of fc.weight",
    "exp_avg of fc.weight",
    "SoftmaxBackward0.result in blocks.0.attn",
    "BmmBackward0.self in blocks.0.attn",
    "ConvolutionBackward0.input in 0",
    "NativeLayerNormBackward0.input",
    "cuDNN workspace",
    ".",
];
const SHAPES: [&str; 9] = [
    "float32[4, 8, 512, 512]",
    "float32[2, 64, 128, 128]",
    "bfloat16[2, 64, 128]",
    "int64[8, 1024, 5000]",
    "float32[4096, 32000]",
    "float32[]",
    "float32[18446744073709551615, 3]",
    "float32[0, 7]",
    "?",
];
const FACTS: [(&str, &str); 16] = [
    ("frozen", "blocks.1.mlp"),
    ("unused", "fc.weight"),
    ("checkpointing", "blocks"),
    ("recomputed", "blocks.0.attn"),
    ("sdpa", "module=blocks.0.attn dim=64 dtype=float64 mask=no heads=8 groups=2"),
    ("sdpa", "module= dim=x"),
    ("weights_wanted", "blocks.0.attn"),
    ("outer", "module=- shape=2x64x128x128"),
    ("outer", "module=head shape=x"),
    ("unfolded", "module=Net columns=64 times=49.0"),
    ("one_hot", "module=- shape=8x1024x5000"),
    ("upsampled", "0"),
    ("evaluated_with_grad", "Net"),
    ("retained", "train.py:7"),
    ("autocast", "bfloat16"),
    ("cudnn_benchmark", "on"),
];

#[derive(Clone, Debug)]
enum Act {
    Alloc(u64, [usize; 3]),
    Free(usize),
    Name(usize, usize, usize),
    Shape(usize, usize),
    Phase(usize, u32),
    Refuse(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let at = any::<usize>;
    let act = prop_oneof![
        6 => (1u64..40_000_000, [0..8usize, 0..12, 0..4]).prop_map(|(size, who)| Act::Alloc(size, who)),
        2 => at().prop_map(Act::Free),
        4 => (at(), 0..Category::ALL.len(), 0..NAMES.len()).prop_map(|(a, b, c)| Act::Name(a, b, c)),
        4 => (at(), 0..SHAPES.len()).prop_map(|(at, shape)| Act::Shape(at, shape)),
        2 => (0..Phase::ALL.len(), 1..5u32).prop_map(|(phase, step)| Act::Phase(phase, step)),
        1 => prop_oneof![Just(u64::MAX), 1u64..1 << 40].prop_map(Act::Refuse),
    ];
    vec(act, 1..120)
}

/// A recording in which these things happen; addresses are labels.
fn recording(acts: &[Act], facts: &[usize]) -> Recording {
    let mut recording = Recording::default();
    recording.owners.push(Owner::default());
    for fact in facts {
        recording.about.facts.add(FACTS[*fact].0, FACTS[*fact].1);
    }
    for (path, class) in MODULES {
        let (path, class) = (recording.texts.intern(path), recording.texts.intern(class));
        recording.modules.push(Module { path, class });
    }
    let mut live: Vec<(u64, u64)> = Vec::new();
    for (index, act) in acts.iter().enumerate() {
        let address = (index as u64 + 1) << 32;
        let events = events(&mut recording, act, address, &mut live);
        recording.events.extend(events);
    }
    recording
}

fn events(
    recording: &mut Recording,
    act: &Act,
    address: u64,
    live: &mut Vec<(u64, u64)>,
) -> Vec<Event> {
    let mut text = |text: &str| -> TextId { recording.texts.intern(text) };
    let alive = |at: usize| live.get(at % live.len().max(1)).copied();
    match *act {
        Act::Alloc(size, [module, operator, node]) => {
            let (module, operator) = (text(MODULES[module].0), text(OPERATORS[operator]));
            let owner = Owner { module, operator, node: text(NODES[node]), stack: None };
            recording.owners.push(owner);
            live.push((address, size));
            let owner = OwnerId(recording.owners.len() as u32 - 1);
            vec![Event::Alloc { address, size, stream: 0, owner, pool: (0, 0) }]
        }
        Act::Free(at) if !live.is_empty() => {
            let (address, size) = live.swap_remove(at % live.len());
            vec![Event::FreeRequested { address, size }, Event::FreeCompleted { address, size }]
        }
        Act::Name(at, category, name) => alive(at)
            .map(|(address, _)| {
                let (category, name) = (Category::ALL[category], text(NAMES[name]));
                vec![Event::Mark(Mark::Name { address, category, name })]
            })
            .unwrap_or_default(),
        Act::Shape(at, shape) => alive(at)
            .map(|(address, _)| {
                vec![Event::Mark(Mark::Tensor { address, what: text(SHAPES[shape]) })]
            })
            .unwrap_or_default(),
        Act::Phase(phase, step) => {
            vec![Event::Mark(Mark::Phase { phase: Phase::ALL[phase], step })]
        }
        Act::Refuse(size) => vec![Event::OutOfMemory { size, free: 1, stream: 0, pool: (0, 0) }],
        Act::Free(_) => Vec::new(),
    }
}

fn assert_stands(anatomy: &Anatomy, ended_by_memory: bool) {
    let refusal = anatomy.out_of_memory.as_ref().filter(|_| ended_by_memory);
    // A request of any size may fail: together with what is allocated it need not fit 64 bits.
    let total = refusal.map_or(u128::from(anatomy.allocated_peak.allocated), |refusal| {
        u128::from(refusal.at.allocated) + u128::from(refusal.tried_bytes)
    });
    let findings = diagnose(anatomy, ended_by_memory);
    let counted = findings.iter().filter(|finding| finding.counted);
    let counted: u128 = counted.map(|finding| u128::from(finding.bytes)).sum();
    assert!(counted <= total, "{counted} of {total}: {findings:#?}");
    for finding in &findings {
        assert!(detectors::TABLE.iter().any(|row| row.id == finding.id), "{}", finding.id);
        assert!(!finding.title.is_empty() && !finding.explanation.is_empty(), "{finding:?}");
        assert!(finding.of == Whole::Reserved || u128::from(finding.bytes) <= total, "{finding:?}");
        let shown = finding.evidence.iter().fold(0u64, |sum, row| sum.saturating_add(row.bytes));
        assert!(shown <= finding.bytes, "{finding:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_diagnosis_stands(acts in acts(), facts in vec(0..FACTS.len(), 0..8), ended in any::<bool>()) {
        let recording = recording(&acts, &facts);
        let anatomy = anatomy::dissect(&recording, &replay(&recording, &Settings::default()));
        assert_stands(&anatomy, ended);
    }
}
