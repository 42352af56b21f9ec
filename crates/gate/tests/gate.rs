//! Baselines written, read again and compared.

use gate::{
    Baseline, BaselineCard, Change, DEFAULT_MARGIN, Error, Kind, LISTED, Margin, Module, Peaks,
    compare, read, write,
};

const MIB: u64 = 1 << 20;

fn module(path: &str, class: &str, mib: u64) -> Module {
    Module { path: path.to_owned(), class: class.to_owned(), bytes: mib * MIB }
}

fn sample() -> Baseline {
    Baseline {
        card: Some(BaselineCard { name: "rtx3090".to_owned(), memory_bytes: 24 << 30 }),
        torch: "2.15.0+cu132".to_owned(),
        cudnn: "9.26.0".to_owned(),
        workspaces: "exact".to_owned(),
        steps: 3,
        peaks: Peaks { allocated: 1000 * MIB, reserved: 1100 * MIB, device: 1300 * MIB },
        need: None,
        categories: vec![("weights".to_owned(), 400 * MIB), ("activations".to_owned(), 600 * MIB)],
        modules: vec![
            module("", "", 100),
            module("encoder.*", "Block", 700),
            module("head", "Linear", 200),
        ],
        unlisted_bytes: 0,
    }
}

fn grown(mib: u64) -> Baseline {
    let mut now = sample();
    now.peaks.allocated += mib * MIB;
    now.categories[1].1 += mib * MIB;
    now.modules[1].bytes += mib * MIB;
    now
}

#[test]
fn what_is_written_is_read() {
    let text = write(&sample());
    assert_eq!(read(&text), Ok(sample()));
    assert_eq!(write(&read(&text).unwrap()), text);
    assert!(text.len() < 1200, "{} bytes", text.len());
    let bare = Baseline { card: None, modules: Vec::new(), categories: Vec::new(), ..sample() };
    assert_eq!(read(&write(&bare)), Ok(bare));
}

#[test]
fn only_the_largest_modules_are_listed_and_no_byte_is_lost() {
    let many: Vec<Module> =
        (0..100).map(|index| module(&format!("m{index:02}"), "Linear", index)).collect();
    let back = read(&write(&Baseline { modules: many.clone(), ..sample() })).unwrap();
    assert_eq!(back.modules, many[100 - LISTED..]);
    let sum = |list: &[Module]| list.iter().map(|row| row.bytes).sum::<u64>();
    assert_eq!(sum(&back.modules) + back.unlisted_bytes, sum(&many));
    // Written again it stays what it is.
    assert_eq!(write(&back), write(&Baseline { modules: many, ..sample() }));
}

#[test]
fn foreign_files_are_refused() {
    assert!(matches!(read("PK\u{3}\u{4}"), Err(Error::Form(_))));
    assert!(matches!(read("[]"), Err(Error::Form(_))));
    assert!(matches!(read("{\"schema\": \"fathom.baseline/1\"}"), Err(Error::Form(_))));
    assert_eq!(
        read("{\"schema\": \"fathom.report/1\"}"),
        Err(Error::Schema("fathom.report/1".into()))
    );
    let evil = write(&Baseline { modules: vec![module("a\u{1b}[2J", "", 1)], ..sample() });
    assert_eq!(read(&evil), Err(Error::Name));
    let negative = write(&sample()).replace(&(600 * MIB).to_string(), "-5");
    assert!(matches!(read(&negative), Err(Error::Form(_))));
}

#[test]
fn growth_over_the_margin_is_named_by_category_and_module() {
    let change = compare(&sample(), &grown(21), DEFAULT_MARGIN);
    assert_eq!(change.kind, Kind::Grew);
    assert_eq!(change.allocated, Change { before: 1000 * MIB, after: 1021 * MIB });
    assert_eq!(
        change.categories,
        [("activations".to_owned(), Change { before: 600 * MIB, after: 621 * MIB })]
    );
    let names: Vec<&str> = change.modules.iter().map(|row| row.path.as_str()).collect();
    assert_eq!((names, change.modules[0].before), (vec!["encoder.*"], Some(700 * MIB)));
    assert!(change.remarks.is_empty(), "{:?}", change.remarks);
    // Exactly at the margin it passes, and each of the three peaks counts.
    assert_eq!(compare(&sample(), &grown(20), DEFAULT_MARGIN).kind, Kind::Same);
    assert_eq!(compare(&sample(), &grown(1), Margin::Bytes(0)).kind, Kind::Grew);
    assert_eq!(compare(&sample(), &sample(), Margin::Bytes(0)).kind, Kind::Same);
    for raise in [|p: &mut Peaks| p.reserved += 23 * MIB, |p: &mut Peaks| p.device += 27 * MIB] {
        let mut now = sample();
        raise(&mut now.peaks);
        assert_eq!(compare(&sample(), &now, DEFAULT_MARGIN).kind, Kind::Grew);
    }
}

#[test]
fn what_is_only_cached_is_not_needed() {
    let needs = |mib: u64| Baseline { need: Some(mib * MIB), ..sample() };
    let mut caches_more = needs(1200);
    caches_more.peaks.reserved *= 2;
    caches_more.peaks.device *= 2;
    assert_eq!(read(&write(&caches_more)), Ok(caches_more.clone()));
    assert_eq!(compare(&needs(1200), &caches_more, DEFAULT_MARGIN).kind, Kind::Same);
    assert_eq!(compare(&needs(1200), &needs(1300), DEFAULT_MARGIN).kind, Kind::Grew);
    // An older file does not know it: what was taken counts, as before.
    assert_eq!(compare(&sample(), &caches_more, DEFAULT_MARGIN).kind, Kind::Grew);
}

#[test]
fn what_shrank_is_said_to_have() {
    assert_eq!(compare(&grown(100), &sample(), DEFAULT_MARGIN).kind, Kind::Shrank);
    assert_eq!(compare(&grown(100), &sample(), Margin::Bytes(100 * MIB)).kind, Kind::Same);
}

#[test]
fn modules_come_and_go() {
    let mut now = sample();
    now.modules = vec![module("", "", 100), module("decoder.*", "Block", 900)];
    let rows: Vec<(String, Option<u64>, u64)> = compare(&sample(), &now, DEFAULT_MARGIN)
        .modules
        .into_iter()
        .map(|row| (row.path, row.before.map(|bytes| bytes / MIB), row.after / MIB))
        .collect();
    let expected =
        [("decoder.*", Some(0), 900), ("encoder.*", Some(700), 0), ("head", Some(200), 0)];
    assert_eq!(rows, expected.map(|(path, before, after)| (path.to_owned(), before, after)));
    // A baseline that leaves modules out does not know what those it leaves out had.
    let short = Baseline { unlisted_bytes: MIB, ..sample() };
    now.modules.push(module("tail", "Linear", 90));
    let rows = compare(&short, &now, DEFAULT_MARGIN).modules;
    assert_eq!(rows[0].before, None);
    assert!(rows.iter().all(|row| row.path != "tail"), "smaller than all that is listed");
}

#[test]
fn other_software_is_remarked() {
    let now = Baseline { torch: "2.16.0".into(), cudnn: String::new(), steps: 1, ..sample() };
    let remarks = compare(&sample(), &now, DEFAULT_MARGIN).remarks;
    assert_eq!(remarks.len(), 3, "{remarks:?}");
    assert!(remarks[1].ends_with("cuDNN 9.26.0, this run with none"), "{remarks:?}");
    let bare = Baseline { categories: Vec::new(), modules: Vec::new(), ..sample() };
    let change = compare(&bare, &grown(21), DEFAULT_MARGIN);
    assert_eq!((change.kind, change.categories.len(), change.modules.len()), (Kind::Grew, 0, 0));
    assert!(change.remarks[0].contains("only peaks are compared"));
}
