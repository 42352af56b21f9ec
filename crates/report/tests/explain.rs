//! A small recording, explained: the text as people see it, and the JSON as programs do.

use std::fs;
use std::path::Path;

use allocator::{Settings, replay};
use report::{Explanation, Reader, Unfold, explain, explain_json};
use study::Study;

/// Two layers, one step, and a loss that is kept every step.
const RECORDING: &str = r#"
torch 2.15.0
memory 1073741824
context 104857600
parameters total 2097152 trainable 1048576 frozen 1048576
text 1 "train.py"
text 2 "main"
text 3 "layers.0"
text 4 "layers.1"
text 5 "Linear"
text 6 "addmm"
text 7 "layers.0.weight"
text 8 "layers.1.weight"
text 9 "float32[1024, 1024]"
text 10 "AddmmBackward0.mat1 in layers.1"
text 11 "add"
text 12 "Net"
frame 0 file 1 function 2 line 3
frame 1 file 1 function 2 line 8
frame 2 file 1 function 2 line 12
stack 0 frame 0
stack 1 frame 1
stack 2 frame 2
owner 0
owner 1 stack 0
owner 2 module 3 operator 6 stack 1
owner 3 module 4 operator 6 stack 1
owner 4 operator 11 stack 2
module 0 path 12 class 12
module 1 path 3 class 5
module 2 path 4 class 5
phase construction step 1
alloc 0x1000000 4194304 owner 1
alloc 0x2000000 4194304 owner 1
phase forward step 1
alloc 0x3000000 8388608 owner 2
name 0x3000000 activations text 10
phase optimizer step 1
name 0x1000000 weights text 7
tensor 0x1000000 text 9
name 0x2000000 weights text 8
tensor 0x2000000 text 9
phase forward step 2
free_requested 0x3000000 8388608
free_completed 0x3000000 8388608
alloc 0x4000000 4 owner 4
phase optimizer step 2
phase forward step 3
alloc 0x5000000 4 owner 4
alloc 0x6000000 8388608 owner 3
phase optimizer step 3
"#;

fn explanation() -> Explanation {
    let recording = recording::text::recording(RECORDING).unwrap();
    let timeline = replay(&recording, &Settings::default());
    anatomy::check(&recording, &timeline).unwrap();
    Explanation {
        file: "run.fathom".to_owned(),
        study: Study {
            torch: recording.about.torch.clone(),
            is_whole: true,
            anatomy: anatomy::dissect(&recording, &timeline),
            notes: vec!["a note".to_owned()],
            ..Study::default()
        },
        answers: Vec::new(),
        next: Some("fathom explain --all run.fathom".to_owned()),
    }
}

/// Compares with a file of `tests/golden`, or writes it.
fn is_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert!(text == golden, "UPDATE_GOLDEN=1 cargo test -p report changes {name} to\n{text}");
}

#[test]
fn a_few_lines_at_any_width() {
    for columns in [60, 80, 120] {
        let text = explain(&explanation(), Reader::plain(columns), &Unfold::default());
        is_golden(&format!("explain-{columns}.txt"), &text);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(text.lines().count() <= 20 && widest <= columns, "{text}");
    }
    let [narrow, least] =
        [0, 60].map(|columns| explain(&explanation(), Reader::plain(columns), &Unfold::default()));
    assert_eq!(narrow, least, "less breaks every sentence");
}

#[test]
fn everything_unfolds() {
    let text = explain(&explanation(), Reader::plain(100), &Unfold::all());
    is_golden("explain-all.txt", &text);
    let named = Unfold { ledger: true, modules: true, phases: true, ..Unfold::default() };
    let text = explain(&explanation(), Reader::plain(100), &named);
    for row in [
        "    context                          100.0 MiB  measured",
        "           layers.0 Linear",
        "step 2    forward            allocated    16.0 MiB  reserved    22.0 MiB",
    ] {
        assert!(text.contains(row), "{row} is not in\n{text}");
    }
    assert!(!text.contains("operator") && !text.contains("\nlines"), "{text}");
}

#[test]
fn programs_see_every_field() {
    let json: serde_json::Value = serde_json::from_str(&explain_json(&explanation())).unwrap();
    let allocated = json["peak"]["allocated_bytes"].as_u64().unwrap();
    for (list, field) in [
        ("categories", "bytes"),
        ("modules", "own_bytes"),
        ("lines", "bytes"),
        ("operators", "bytes"),
    ] {
        let rows = json[list].as_array().unwrap().iter();
        let sum: u64 = rows.map(|row| row[field].as_u64().unwrap()).sum();
        assert_eq!(sum, allocated, "{list}");
    }
    assert_eq!(json["schema"], "fathom.explain/1");
    assert_eq!((&json["peak"]["module"], &json["peak"]["line"]), (&"layers.1".into(), &8.into()));
    assert_eq!(json["tensors"][1]["shape"], serde_json::json!([1024, 1024]));
    assert_eq!(json["growth_bytes_per_step"], 512);
    assert_eq!(json["growth"][0]["file"], "train.py");
    assert_eq!(json["parameters"]["frozen"], 1_048_576);
    assert_eq!(
        json["ledger"][0],
        serde_json::json!({"name": "card", "bytes": 1u64 << 30, "known": "measured"})
    );
    assert!(json["out_of_memory"].is_null());
}
