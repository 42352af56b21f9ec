//! Random programs, and the settings they run under.

use proptest::prelude::*;

use crate::program::{Operation, Program, STREAMS};

const MIB: u64 = 1 << 20;

/// Settings, and what goes with them.
pub(crate) struct Case {
    /// What it is about.
    pub(crate) name: &'static str,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    settings: &'static str,
    /// The first version that knows these settings.
    since: (u32, u32),
    /// How often a program has a fraction, how often another bound or none.
    fractions: (u32, u32),
    /// What may be set on the way.
    changes: &'static [&'static str],
}

const PLAIN: Case = Case { name: "", settings: "", since: (2, 0), fractions: (1, 2), changes: &[] };

/// Garbage is collected only with a fraction.
const ALWAYS: (u32, u32) = (1, 0);

/// Every kind of settings. Sizes that are not split do not change on the way: PyTorch itself would
/// give back parts of segments then.
pub(crate) const CASES: &[Case] = &[
    Case { name: "default", ..PLAIN },
    Case { name: "expandable segments", settings: "expandable_segments:True", ..PLAIN },
    Case { name: "split size", settings: "max_split_size_mb:32", ..PLAIN },
    Case { name: "round-up", settings: "roundup_power2_divisions:4", ..PLAIN },
    Case {
        name: "garbage collection",
        settings: "garbage_collection_threshold:0.6",
        fractions: ALWAYS,
        ..PLAIN
    },
    Case {
        name: "round-up by size, expandable segments",
        settings: "roundup_power2_divisions:[1:8,4:2,64:4,>:1],expandable_segments:True",
        ..PLAIN
    },
    Case {
        name: "split size, expandable segments",
        settings: "max_split_size_mb:32,expandable_segments:True",
        since: (2, 5),
        ..PLAIN
    },
    Case {
        name: "all together",
        settings: "garbage_collection_threshold:0.5,max_split_size_mb:64,roundup_power2_divisions:8",
        fractions: ALWAYS,
        ..PLAIN
    },
    Case {
        name: "garbage collection, expandable segments",
        settings: "garbage_collection_threshold:0.4,expandable_segments:True",
        fractions: ALWAYS,
        changes: &[
            "garbage_collection_threshold:0.4,expandable_segments:False",
            "garbage_collection_threshold:0.8",
        ],
        ..PLAIN
    },
    Case {
        name: "settings that change",
        changes: &[
            "expandable_segments:True",
            "expandable_segments:False",
            "roundup_power2_divisions:2",
            "",
        ],
        ..PLAIN
    },
    Case {
        name: "non-split rounding",
        settings: "max_split_size_mb:20,max_non_split_rounding_mb:64",
        since: (2, 10),
        ..PLAIN
    },
    Case { name: "large segments", settings: "large_segment_size_mb:32", since: (2, 11), ..PLAIN },
    Case {
        name: "large pages",
        settings: "large_segment_size_mb:64,expandable_segments:True",
        since: (2, 11),
        ..PLAIN
    },
    Case {
        name: "early refusal",
        settings: "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.05",
        since: (2, 12),
        fractions: (0, 1),
        ..PLAIN
    },
];

impl Case {
    /// Does a version, as torch reports it, know the settings?
    pub(crate) fn exists_in(&self, torch: &str) -> bool {
        let version = allocator::Settings::for_torch(torch).map(|settings| settings.version);
        version.is_ok_and(|version| self.since <= version)
    }
}

/// Programs under a case's settings.
pub(crate) fn programs(case: &'static Case) -> impl Strategy<Value = Program> {
    let favourites = prop::collection::vec(size(), 8);
    let body = prop::collection::vec(step(case), 1..120);
    let input = (memory(case), favourites, 1..=STREAMS, 0..=2usize, body);
    input.prop_map(move |(memory, favourites, streams, pools, body)| {
        let settings = Operation::Settings(case.settings.to_owned());
        let body = body.into_iter().map(|step| step.operation(&favourites, streams, pools));
        Program(memory.into_iter().chain([settings]).chain(body).collect())
    })
}

/// An operation before it is known how many streams and pools its program has: so each can be left
/// out or made simpler by itself.
#[derive(Clone, Debug)]
enum Step {
    /// One of the program's favourite sizes.
    AllocAgain { which: usize, stream: usize, pool: usize },
    /// Any other operation.
    Plain(Operation),
}

impl Step {
    fn operation(self, favourites: &[u64], streams: usize, pools: usize) -> Operation {
        let operation = match self {
            Step::AllocAgain { which, stream, pool } => {
                Operation::Alloc { size: favourites[which], stream, pool }
            }
            Step::Plain(operation) => operation,
        };
        match operation {
            Operation::Alloc { size, stream, pool } => {
                Operation::Alloc { size, stream: stream % streams, pool: pool % (pools + 1) }
            }
            Operation::Record { which, stream } => {
                Operation::Record { which, stream: stream % streams }
            }
            other => other,
        }
    }
}

/// The lines that bound the memory: a fraction, somebody else's share, or none.
fn memory(case: &Case) -> impl Strategy<Value = Vec<Operation>> + use<> {
    // Thousandths, so that the text form is short.
    let fraction = (10..150u64).prop_map(|f| vec![Operation::Fraction(f as f64 / 1000.0)]);
    // Of a card with 4 GiB, 3678 MiB are free.
    let occupied = (3000..3650u64).prop_map(|mib| vec![Operation::Occupied(mib * MIB)]);
    let (with, without) = case.fractions;
    let other = prop_oneof![Just(Vec::new()), occupied];
    prop_oneof![with => fraction, without => other]
}

/// Bytes of a request: of every kind, and the edges between kinds.
fn size() -> impl Strategy<Value = u64> {
    let edges = [512, 1024, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 32 * MIB, 64 * MIB];
    let edge =
        (prop::sample::select(edges.to_vec()), prop::sample::select(vec![-512, -1, 0, 1, 512]))
            .prop_map(|(edge, off): (u64, i64)| edge.saturating_add_signed(off).max(1));
    prop_oneof![
        6 => 1..64 * 1024u64,
        4 => 64 * 1024..MIB,
        5 => MIB..10 * MIB,
        3 => 10 * MIB..70 * MIB,
        2 => edge,
        1 => 70 * MIB..400 * MIB,
    ]
}

fn step(case: &'static Case) -> impl Strategy<Value = Step> {
    let place = || (0..STREAMS, prop_oneof![5 => Just(0), 1 => 0..3usize]);
    let again = (0..8usize, place()).prop_map(|(which, (stream, pool))| Step::AllocAgain {
        which,
        stream,
        pool,
    });
    let alloc = (size(), place())
        .prop_map(|(size, (stream, pool))| Step::Plain(Operation::Alloc { size, stream, pool }));
    let which = || 0..100usize;
    let free = which().prop_map(|which| Step::Plain(Operation::Free { which }));
    let record = (which(), 0..STREAMS)
        .prop_map(|(which, stream)| Step::Plain(Operation::Record { which, stream }));
    let changes: Vec<&str> = case.changes.iter().copied().chain([""]).collect();
    let change = prop::sample::select(changes)
        .prop_map(|conf| Step::Plain(Operation::Settings(conf.to_owned())));
    let changing = if case.changes.is_empty() { 0 } else { 3 };
    prop_oneof![
        36 => again,
        24 => alloc,
        40 => free,
        8 => record,
        3 => Just(Step::Plain(Operation::EmptyCache)),
        1 => Just(Step::Plain(Operation::Synchronize)),
        changing => change,
    ]
}
