//! Which settings make the sizes of the cause's tensors.

use std::cmp::Reverse;

use anatomy::Alike;
use fit::trace::{Seen, made_of};
use report::document::Traced;

use super::lab::Trial;
use super::scaling::Line;
use super::subject::Subject;

/// Tensors of the cause whose sizes are traced.
const TRACED: usize = 3;

/// The sizes of the first cause's largest tensors, by the settings that move them.
pub(super) fn traced(subject: &Subject, base: &Trial, lines: &[Line<'_>]) -> Vec<Traced> {
    // Of what ended the run, where memory did: its tensors are there in the run without a limit.
    let told = report::document::causes(&subject.run, subject.whole());
    let first = told.iter().find(|finding| finding.counted);
    let findings = subject.whole().findings();
    let same = first.and_then(|first| findings.iter().find(|finding| finding.id == first.id));
    let cause = same.or_else(|| findings.iter().find(|finding| finding.counted));
    let evidence = cause.into_iter().flat_map(|finding| &finding.evidence);
    let (mut rows, mut tensors): (Vec<Traced>, usize) = (Vec::new(), 0);
    for proof in evidence.filter(|proof| !proof.dtype.is_empty() && 1 < proof.shape.len()) {
        let is_it = |it: &&Alike| {
            let first = &it.first;
            first.shape == proof.shape
                && first.dtype == proof.dtype
                && is_file(&first.origin.file, &proof.file)
                && first.origin.line == proof.line
        };
        let Some(tensor) = base.tensors.iter().find(is_it) else { continue };
        let sizes: Vec<String> = proof.shape.iter().map(u64::to_string).collect();
        let text = format!("{}[{}]", proof.dtype, sizes.join(", "));
        if rows.iter().any(|row| row.tensor == text) {
            continue;
        }
        for (side, size) in proof.shape.iter().enumerate().filter(|(_, size)| 1 < **size) {
            let row = trace_one((tensor, base), side, *size, lines);
            let is_new = rows.iter().all(|it| (it.size, &it.made_of) != (row.size, &row.made_of));
            if is_new {
                let at = format!("{}:{}", proof.file, proof.line);
                rows.push(Traced { tensor: text.clone(), at, ..row });
            }
        }
        tensors += 1;
        if tensors == TRACED {
            break;
        }
    }
    // Without a setting that moves one of them there is nothing to say.
    if rows.iter().all(|row| row.made_of.is_empty()) {
        rows.clear();
    }
    rows
}

/// One side of a shape, in the trials of every setting.
fn trace_one(
    (tensor, base): (&Alike, &Trial),
    side: usize,
    size: u64,
    lines: &[Line<'_>],
) -> Traced {
    let (mut seen, mut became, mut moved_by) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines {
        let name = short(&line.found.knob.name, lines);
        let went = line.trials.iter().filter(|(_, trial)| trial.outcome.fits());
        let now = |trial: &Trial| same_tensor(tensor, base, trial)?.first.shape.get(side).copied();
        let became_of: Vec<(&String, u64)> =
            went.filter_map(|(value, trial)| Some((value, now(trial)?))).collect();
        let Some((value, now)) = became_of.iter().find(|(_, now)| *now != size) else {
            seen.extend(
                line.found.number().map(|number| Seen { knob: name, sizes: vec![(number, size)] }),
            );
            continue;
        };
        became.push(format!("{name} {value}: {now}"));
        let Some(number) = line.found.number() else {
            moved_by.push(name);
            continue;
        };
        let all = became_of.iter().filter_map(|(value, now)| Some((value.parse().ok()?, *now)));
        let sizes = std::iter::once((number, size)).chain(all).collect();
        seen.push(Seen { knob: name, sizes });
    }
    let made_of = match (made_of(size, &seen), moved_by.is_empty()) {
        (text, true) => text,
        (text, false) if text.is_empty() => format!("moves with {}", moved_by.join(", ")),
        (text, false) => format!("{text}; moves with {}", moved_by.join(", ")),
    };
    Traced { size, made_of, seen: became, ..Traced::default() }
}

/// The last part of a dotted name, if no other setting ends so.
fn short(name: &str, lines: &[Line<'_>]) -> String {
    fn last(name: &str) -> &str {
        name.rsplit('.').next().unwrap_or(name)
    }
    let alike = lines.iter().filter(|line| last(&line.found.knob.name) == last(name)).count();
    if alike < 2 { last(name).to_owned() } else { name.to_owned() }
}

/// The same tensor in another trial: by its line and maker, and its place among those of different sizes there.
fn same_tensor<'a>(tensor: &Alike, base: &Trial, other: &'a Trial) -> Option<&'a Alike> {
    let key = |it: &Alike| {
        let origin = &it.first.origin;
        let module: String =
            origin.module.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        (
            origin.file.clone(),
            origin.line,
            origin.operator.clone(),
            origin.node.clone(),
            it.first.dtype.clone(),
            it.first.shape.len(),
            module,
        )
    };
    let wanted = key(tensor);
    fn distinct(mut all: Vec<&Alike>) -> Vec<&Alike> {
        all.sort_by_key(|it| Reverse(it.first.bytes));
        all.dedup_by(|a, b| a.first.shape == b.first.shape);
        all
    }
    let here = distinct(base.tensors.iter().filter(|it| key(it) == wanted).collect());
    let there = distinct(other.tensors.iter().filter(|it| key(it) == wanted).collect());
    let at = here.iter().position(|it| it.first.shape == tensor.first.shape)?;
    if here.len() != there.len() {
        return None;
    }
    there.get(at).copied()
}

/// A recording has whole paths where Python has them; what is shown of the script's own folder is shorter.
fn is_file(whole: &str, shown: &str) -> bool {
    whole == shown || whole.strip_suffix(shown).is_some_and(|front| front.ends_with('/'))
}
