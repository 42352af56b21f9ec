//! Prints the findings of a recording, and with a second argument what is alive at its peak. For whoever
//! writes a detector.

use std::collections::BTreeMap;

use allocator::{Settings, reproduce};
use anatomy::{Anatomy, bytes};

fn main() {
    let path = std::env::args().nth(1).expect("the path of a recording");
    let file = std::fs::read(path).expect("a file that can be read");
    let recording = recording::file::read(&file).expect("a recording");
    let settings = Settings::of(&recording.about).expect("settings that exist");
    let result = reproduce(&recording, &settings);
    let anatomy = anatomy::dissect(&recording, &result.timeline);
    let findings = diagnose::diagnose(&anatomy, anatomy.out_of_memory.is_some());
    let counted: u64 = findings.iter().filter(|f| f.counted).map(|f| f.bytes).sum();
    let peak = &anatomy.allocated_peak;
    println!(
        "peak {} {:?}, counted {}",
        bytes::text(peak.allocated),
        peak.when,
        bytes::text(counted)
    );
    for finding in &findings {
        let mark = if finding.counted { ' ' } else { '·' };
        println!("{mark}{:>10} {} — {}", bytes::text(finding.bytes), finding.id, finding.title);
        println!("            {}", finding.explanation);
        let ids: Vec<&str> = finding.remedies.iter().map(|remedy| remedy.id).collect();
        println!("            scales {}; {}", finding.scales, ids.join(", "));
    }
    if std::env::args().nth(2).is_some() {
        alive(&anatomy);
    }
}

fn alive(anatomy: &Anatomy) {
    let at = anatomy.out_of_memory.as_ref().map_or(&anatomy.allocated_peak, |refusal| &refusal.at);
    let mut kinds: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for tensor in &at.tensors {
        let origin = &tensor.origin;
        let also: Vec<&str> = tensor.also.iter().map(|(_, name)| name.as_str()).collect();
        let key = format!(
            "{:?} {}{:?} «{}» {also:?} module {} operator {} node {} {}:{} born {:?}",
            tensor.category,
            tensor.dtype,
            tensor.shape,
            tensor.name,
            origin.module,
            origin.operator,
            origin.node,
            origin.file,
            origin.line,
            tensor.born
        );
        let (bytes, count) = kinds.entry(key).or_default();
        *bytes += tensor.block;
        *count += 1;
    }
    let mut rows: Vec<(String, (u64, u64))> = kinds.into_iter().collect();
    rows.sort_by_key(|(_, (bytes, _))| std::cmp::Reverse(*bytes));
    for (key, (size, count)) in rows.iter().take(80) {
        println!("{:>10} {count} × {key}", bytes::text(*size));
    }
}
