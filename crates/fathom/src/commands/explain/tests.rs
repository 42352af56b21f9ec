//! Memory in pieces, from a recording to the text: a request that failed, a recorded snapshot, numbers
//! that cannot be.

use report::{Reader, Unfold};
use study::fragments::Cause;

use super::*;

const PIECES: Wants = Wants { fragments: true, floor: false, deferred: false, source: false };

/// A segment of 100 MiB in which 12 MiB are kept, one of 120 MiB in which 90 MiB are kept; then
/// 110 MiB are asked for.
const FAILED: &str = r#"
torch 2.15.0
memory 232783872
text 1 "train.py"
text 2 "main"
text 3 "bmm"
frame 0 file 1 function 2 line 12
stack 0 frame 0
owner 0
owner 1 operator 3 stack 0
phase forward step 1
segment_alloc 0x10000000 104857600
alloc 0x10000000 104857600
free_requested 0x10000000 104857600
free_completed 0x10000000 104857600
alloc 0x10000000 12582912
segment_alloc 0x20000000 125829120
alloc 0x20000000 125829120
free_requested 0x20000000 125829120
free_completed 0x20000000 125829120
alloc 0x20000000 94371840
oom 115343360 free 2097152
owner_of 0x0 owner 1
"#;

const TEXT: &str = "\
run.fathom  device 0 · torch 2.15.0 · 11 events
tried    110.0 MiB by bmm at train.py:12 with 2.0 MiB free in forward, step 1
why      No room for 110.0 MiB: the largest free block for it has 88.0 MiB, the card had 2.0 MiB
         left
         118.0 MiB were free in 2 blocks, kept apart by blocks in use; `expandable_segments:True`
         would have met this request
peak     allocated 132.0 MiB in forward, step 1
         reserved 220.0 MiB in forward, step 1
causes    118.0 MiB   54 % PyTorch's cache and fragmentation
try      options, not tested yet: allocator (exact)
note     snapshots carry no tensor names, so categories are unknown; `fathom run` records them
";

const PIECES_TEXT: &str = "\
pools                    segments   reserved  allocated       free  in blocks    largest
         large                  2  220.0 MiB  102.0 MiB  118.0 MiB          2   88.0 MiB
map        120.0 MiB  ████████████████████████████████████············  largest free 30.0 MiB
           100.0 MiB  ██████··········································  largest free 88.0 MiB
note";

/// Peak of 280.4 MiB: most segments hold one block, one has a gap.
const SNAPSHOT: &str = "\
pools                    segments   reserved  allocated       free  in blocks    largest
         small                  1    2.0 MiB  854.0 KiB    1.2 MiB          3    1.1 MiB
         large                  8  306.0 MiB  279.5 MiB   26.5 MiB          4   15.3 MiB
map         46.0 MiB  ████████████████████████████████████████████████  full
            46.0 MiB  ████████················████████████████████████  largest free 15.3 MiB
            46.0 MiB  ████████████████████████████████████████████████  full
            46.0 MiB  ████████████████████████████████████████████████  full
            46.0 MiB  ████████████████████████████████████████████████  full
         … 4 more segments: `--fragments`
";

fn explained(text: &str) -> Explanation {
    let recording = recording::text::recording(text).unwrap();
    explanation(recording, Path::new("run.fathom"), PIECES).unwrap()
}

fn shown(explanation: &Explanation) -> String {
    report::explain(explanation, Reader::plain(100), &Unfold::default())
}

fn shown_with_all(explanation: &Explanation) -> String {
    report::explain(explanation, Reader::plain(100), &Unfold::all())
}

#[test]
fn a_request_that_failed_is_told_why() {
    let text = shown(&explained(FAILED));
    assert_eq!(text, TEXT, "\n{text}");
    let text = shown_with_all(&explained(FAILED));
    assert!(text.contains(PIECES_TEXT), "\n{text}");
}

#[test]
fn a_remedy_is_named_only_if_its_replay_met_the_request() {
    let shortage = |text: &str| explained(text).study.fragments.unwrap().shortage.unwrap();
    let remedy = |text: &str| shortage(text).remedy().map(|trial| trial.settings.clone());
    assert_eq!(remedy(FAILED).as_deref(), Some("expandable_segments:True"));
    // With 20 MiB more it is too much for any settings, whatever else is free.
    let more = FAILED.replace("oom 115343360", "oom 136314880");
    assert_eq!((shortage(&more).cause, remedy(&more)), (Cause::Full, None));
    // A card with room was not what refused it: nothing is proved by a replay on it.
    let limit = FAILED.replace("free 2097152", "free 209715200");
    assert_eq!((shortage(&limit).cause, shortage(&limit).trials.len()), (Cause::Limit, 0));
}

#[test]
fn a_setting_that_is_not_known_costs_no_owner() {
    let known = explained(FAILED);
    let newer = explained(&FAILED.replace("2.15.0", "2.99.0\nsettings speed:1"));
    assert_eq!(
        newer.study.notes[0],
        "the allocator setting `speed` is not known to this version; replay agrees without it"
    );
    let tensors = |explanation: &Explanation| {
        format!("{:?}", explanation.study.anatomy.allocated_peak.tensors)
    };
    assert_eq!(tensors(&newer), tensors(&known));
    assert_ne!(tensors(&newer), "[]");
}

#[test]
fn a_snapshot_of_a_real_card_is_drawn() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("tests/recorded/kdr2-t2-None_fwd-eager_bwd.pickle");
    let recording = load::choose(load::load(&path).unwrap(), &path, None).unwrap();
    let explanation = explanation(recording, Path::new("snapshot.pickle"), PIECES).unwrap();
    let text = shown_with_all(&explanation);
    let drawn = &text[text.find("pools").unwrap()..text.find("note").unwrap()];
    assert_eq!(drawn, SNAPSHOT, "\n{drawn}");
    let pieces = explanation.study.fragments.unwrap();
    let peak = &explanation.study.anatomy.allocated_peak;
    assert_eq!(pieces.pools.iter().map(|row| row.allocated_bytes).sum::<u64>(), peak.allocated);
    assert_eq!(pieces.pools.iter().map(|row| row.reserved_bytes).sum::<u64>(), peak.reserved);
    assert_eq!(pieces.segments.len(), 9);
}

#[test]
fn programs_see_pools_and_the_reason() {
    let json: serde_json::Value =
        serde_json::from_str(&report::explain_json(&explained(FAILED))).unwrap();
    let pieces = &json["fragments"];
    assert_eq!(
        (&pieces["at"], &pieces["pools"][0]["free_blocks"]),
        (&"out_of_memory".into(), &2.into())
    );
    assert_eq!(pieces["shortage"]["cause"], "scattered");
    assert_eq!(pieces["shortage"]["remedy"], "expandable_segments:True");
    let refusal = &json["out_of_memory"];
    assert_eq!(refusal["reason"], pieces["shortage"]["reason"]);
    assert_eq!((&refusal["operator"], &refusal["line"]), (&"bmm".into(), &12.into()));
}

#[test]
fn numbers_that_cannot_be_do_not_panic() {
    let most = u64::MAX.to_string();
    for number in ["232783872", "104857600", "125829120", "115343360", "2097152", "94371840"] {
        for other in [most.as_str(), "0", "1", "9223372036854775808", "1152921504606846976"] {
            let explanation = explained(&FAILED.replace(number, other));
            drop((
                shown(&explanation),
                shown_with_all(&explanation),
                report::explain_json(&explanation),
            ));
        }
    }
    for line in [
        format!("oom {most} free {most} stream {most}"),
        format!("alloc 0x0 {most}\noom {most} free 0"),
        format!("segment_alloc 0x1000 {most}\nalloc 0x1000 {most}\noom 1 free 1"),
        format!(
            "segment 0x1000 {most} large stream 0\nblock 0x1000 {most} inactive requested 0\noom 512"
        ),
    ] {
        let explanation = explained(&line);
        drop((
            shown(&explanation),
            shown_with_all(&explanation),
            report::explain_json(&explanation),
        ));
    }
}
