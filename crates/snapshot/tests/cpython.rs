//! The same values, by CPython and by us: random ones of all protocols, and what we write.

mod support;

use snapshot::pickle;

#[test]
fn values_are_those_of_cpython() {
    let Some(printed) = support::python("canonical.py", &[]) else { return };
    let mut n_values = 0;
    for line in printed.lines() {
        let (digits, expected) = line.split_once('\t').expect("two columns");
        let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex");
        let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(digit).collect();
        let arena = pickle::load(&bytes).unwrap_or_else(|error| panic!("{error}: {expected}"));
        assert_eq!(support::canonical(&arena, arena.root()), expected, "{digits}");
        n_values += 1;
    }
    assert!(n_values > 500, "only {n_values} values");
}

#[test]
fn cpython_loads_what_we_write() {
    for path in support::samples() {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let bytes = std::fs::read(&path).expect("sample");
        let written = snapshot::write(&snapshot::read(&bytes).expect("a snapshot"));
        let copy = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&copy, written).expect("written");
        let paths = [&path, &copy].map(|path| path.to_str().expect("UTF-8"));
        let Some(printed) = support::python("count.py", &paths) else { return };
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines[0], lines[1]);
    }
}

/// Protocol 0 fills dicts key by key, the others at once: two ways to the same events.
#[test]
fn every_protocol_gives_the_same_snapshot() {
    for name in [
        "hugepandacoder-mem_snapshots_traditional_single_step.pickle",
        "kdr2-t2-None_fwd-eager_bwd.pickle",
    ] {
        let path = support::recorded().join(name);
        let expected = snapshot::read(&std::fs::read(&path).expect("sample")).expect("snapshot");
        for protocol in ["0", "1", "2", "3", "4", "5"] {
            let copy = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
                .join(format!("protocol-{protocol}-{name}"));
            let paths = [&path, &copy].map(|path| path.to_str().expect("UTF-8"));
            let arguments = [paths[0], paths[1], protocol];
            let Some(_) = support::python("repickle.py", &arguments) else { return };
            let snapshot = snapshot::read(&std::fs::read(&copy).expect("copy")).expect("snapshot");
            assert!(snapshot == expected, "{name} in protocol {protocol}");
        }
    }
}
