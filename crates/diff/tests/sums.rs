//! No byte is lost and none is counted twice: on random pairs the differences of every dimension sum to
//! the difference of the peaks.

use allocator::{Settings, replay};
use diff::{Cause, Change, Difference, Line, Module, Side, Tensor, Totals, compare};
use proptest::prelude::*;
use recording::{Category, Event, Mark, OwnerId, Recording, text};

/// Owners over modules and lines; what `shift` and `wrap` change between two commits.
fn recording(
    acts: &[(u64, usize, usize, bool)],
    shift: u32,
    wrap: &str,
    has_text: bool,
) -> Recording {
    let paths = (0..4).map(|number| format!("{wrap}layers.{number}.fc"));
    let sources = (0..2).map(|number| format!("y = layer{number}(x)"));
    let texts = ["t.py", "f", "addmm", "Linear"].map(str::to_owned).into_iter();
    let texts = texts.chain(paths).chain(sources);
    let mut lines: Vec<String> =
        (1..).zip(texts).map(|(number, text)| format!("text {number} \"{text}\"")).collect();
    for number in 0..4 {
        // The same text stands on two lines.
        let source = if has_text { format!(" source {}", 9 + number % 2) } else { String::new() };
        let line = 10 + 2 * number + if number < 2 { 0 } else { shift };
        lines.push(format!("frame {number} file 1 function 2 line {line}{source}"));
    }
    lines.extend((0..4).map(|number| format!("stack {number} frame {number}")));
    lines.push("owner 0".to_owned());
    for number in 0..4 {
        lines.push(format!(
            "owner {} module {} operator 3 stack {number}",
            number + 1,
            5 + (number + 1) % 4
        ));
    }
    lines.extend((0..4).map(|number| format!("module {number} path {} class 4", 5 + number)));
    let mut recording = text::recording(&lines.join("\n")).unwrap();
    let mut next = 1 << 20;
    for (size, owner, what, is_freed) in acts {
        let (address, owner) = (next, OwnerId(*owner as u32 % 5));
        next += size.next_multiple_of(512) + 512;
        recording.events.push(Event::Alloc {
            address,
            size: *size,
            stream: 0,
            owner,
            pool: (0, 0),
        });
        let name = recording.texts.intern(&format!("{wrap}layers.{}.fc.weight", what % 4));
        let category = Category::ALL[what % Category::ALL.len()];
        recording.events.push(Event::Mark(Mark::Name { address, category, name }));
        let what = recording.texts.intern(&format!("float32[{}, 64]", size / 1000));
        recording.events.push(Event::Mark(Mark::Tensor { address, what }));
        if *is_freed {
            recording.events.push(Event::FreeRequested { address, size: *size });
            recording.events.push(Event::FreeCompleted { address, size: *size });
        }
    }
    recording
}

fn side(recording: &Recording) -> Side {
    let timeline = replay(recording, &Settings::default());
    let anatomy = anatomy::dissect(recording, &timeline);
    Side::of(&anatomy, &diagnose::diagnose(&anatomy, false))
}

fn assert_sums(difference: &Difference) {
    fn sum(rows: impl Iterator<Item = Change>) -> Change {
        rows.fold(Change::default(), |all, row| Change { a: all.a + row.a, b: all.b + row.b })
    }
    let whole = difference.allocated;
    assert_eq!(sum(difference.categories.iter().map(|row| row.bytes)), whole, "categories");
    assert_eq!(sum(difference.modules.iter().map(|row| row.own)), whole, "modules");
    assert_eq!(sum(diff::fold(&difference.modules).iter().map(|row| row.own)), whole, "folded");
    assert_eq!(sum(difference.operators.iter().map(|row| row.bytes)), whole, "operators");
    assert_eq!(sum(difference.lines.iter().map(|row| row.bytes)), whole, "lines");
    assert_eq!(sum(difference.tensors.iter().map(|row| row.bytes)), whole, "tensors");
    let deltas: i64 = difference.tensors.iter().map(|row| row.bytes.delta()).sum();
    assert_eq!(deltas, whole.delta());
}

type Act = (u64, usize, usize, bool);

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (1u64..9_000_000, any::<usize>(), any::<usize>(), any::<bool>());
    proptest::collection::vec(act, 0..60)
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[ab]{1,2}(\\.[0-2]){0,2}", Just("module.a".to_owned())]
}

/// A side as a hostile report might be: names twice, lists that say less than the peak.
fn sides() -> impl Strategy<Value = Side> {
    let row = || (names(), names(), 0u32..4, 0u64..1000);
    let rows = || proptest::collection::vec(row(), 0..12);
    let unlisted = proptest::option::of(0u64..900);
    (rows(), rows(), rows(), rows(), unlisted).prop_map(
        |(modules, lines, tensors, named, unlisted)| {
            let of =
                |rows: &[(String, String, u32, u64)]| rows.iter().map(|row| row.3).sum::<u64>();
            let most = [&modules, &lines, &tensors, &named].map(|rows| of(rows)).into_iter().max();
            let named: Vec<(String, u64)> = named.into_iter().map(|row| (row.0, row.3)).collect();
            let module = |(path, class, _, own)| Module { path, class, own, total: own };
            let line = |(file, source, line, bytes): (String, String, u32, u64)| Line {
                function: "f".to_owned(),
                file,
                source,
                line,
                bytes,
                count: 1,
                library: Vec::new(),
            };
            let tensor = |(module, name, line, bytes): (String, String, u32, u64)| Tensor {
                dtype: "int8".to_owned(),
                shape: vec![bytes],
                category: if bytes % 2 == 0 { "weights" } else { "inputs" }.to_owned(),
                file: name.clone(),
                module,
                name,
                line,
                bytes,
                ..Tensor::default()
            };
            Side {
                totals: Totals { allocated: most.unwrap_or(0) + 7, ..Totals::default() },
                categories: named.clone(),
                operators: named,
                modules: modules.into_iter().map(module).collect(),
                lines: lines.into_iter().map(line).collect(),
                tensors: tensors.into_iter().map(tensor).collect(),
                unlisted_below: unlisted,
                findings: vec![Cause::default()],
                ..Side::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_dimension_sums_to_the_difference_of_the_peaks(
        a in acts(), b in acts(), shift in 0u32..9, has_text in any::<bool>(),
    ) {
        let one = side(&recording(&a, 0, "", true));
        let other = side(&recording(&b, shift, "module.", has_text));
        assert_sums(&compare(&one, &other));
        assert_sums(&compare(&other, &one));
    }

    #[test]
    fn nonsense_sums_too(a in sides(), b in sides()) {
        assert_sums(&compare(&a, &b));
    }

    /// What was only moved and wrapped is the same: nothing grows and nothing shrinks.
    #[test]
    fn a_shifted_and_wrapped_run_does_not_differ(acts in acts(), shift in 0u32..9) {
        let one = side(&recording(&acts, 0, "", true));
        let other = side(&recording(&acts, shift, "module.", true));
        let difference = compare(&one, &other);
        for change in difference.lines.iter().map(|row| row.bytes)
            .chain(difference.modules.iter().map(|row| row.own))
            .chain(difference.tensors.iter().map(|row| row.bytes)) {
            prop_assert_eq!(change.delta(), 0);
        }
    }
}
