//! What was decided by values that are not known, or modelled, in sentences.

use contract::files::Process;
use study::{Decision, Most, Run};

use super::files::decision;
use crate::bound;
use crate::settings::ZERO;

/// Places with a sentence of their own where values that are not known decide something.
const PLACES: usize = 4;

/// How a note begins that says what a user can do about it.
const IF_KNOWN: &str = "if you know it:";

/// What was decided by values that are not known, or modelled.
pub(super) fn add(run: &mut Run, process: &Process) {
    let decisions = process.decisions.iter().map(decision);
    (run.modelled, run.decisions) = decisions.partition(|decision| decision.why == "modelled");
    run.warnings.extend(all_decided(&run.decisions));
    run.notes.extend(can_be_said(run));
    run.notes.extend(run.modelled.first().map(|first| modelled(first, run.modelled.len())));
}

/// What is unknown moves nothing: that is said once instead of line by line.
pub(crate) fn settle(run: &mut Run) {
    let said = all_decided(&run.decisions);
    run.warnings.retain(|warning| !said.contains(warning));
    let hint = can_be_said(run);
    run.notes.retain(|note| Some(note) != hint.as_ref());
    run.notes.extend(settled(&run.decisions));
}

fn settled(decisions: &[Decision]) -> Option<String> {
    let others = and_elsewhere(decisions.len());
    decisions.first().map(|first| format!(
        "what {first}{others} gives is not known, and did not move the peak where the run was tried again, with other values"
    ))
}

/// What a shortened training read that is not known counts for the plain run too, which is reported: the evaluation that only
/// the former came to may need the most of all with other values.
pub(crate) fn adopt(run: &mut Run, short: &Run) {
    let is_new = |one: &&Decision| !run.decisions.iter().any(|other| bound::is_there(one, other));
    let new: Vec<Decision> = short.decisions.iter().filter(is_new).cloned().collect();
    let is_same = short.most.as_ref().is_some_and(|most| most.is_same);
    match is_same {
        true => run.notes.extend(settled(&new)),
        false => run.warnings.extend(all_decided(&new)),
    }
    let had = run.most.take().or_else(|| {
        // What needs no other values is the same with all.
        let device_bytes = run.peak.as_ref().map(|peak| peak.device_bytes);
        let is_certain = run.decisions.is_empty();
        is_certain.then_some(Most { device_bytes, fits: true, is_same: true, failure: None })
    });
    // Without one of them nobody knows the most.
    run.most = had.zip(short.most.clone()).map(|(one, other)| bound::together(one, other));
    run.decisions.extend(new);
    if !is_same && !run.notes.iter().any(|note| note.starts_with(IF_KNOWN)) {
        run.notes.extend(can_be_said(run));
    }
}

/// The places beside the first, which a sentence names.
fn and_elsewhere(places: usize) -> String {
    match places {
        0 | 1 => String::new(),
        2 => " and at one other place".to_owned(),
        _ => format!(" and at {} other places", places - 1),
    }
}

/// What was decided by weights, or by what other ranks give, that stand for others, as a sentence.
fn modelled(first: &Decision, count: usize) -> String {
    let others = and_elsewhere(count);
    let with = match first.assumed.as_str() {
        "ranks" => {
            "rests on what other ranks are taken to give, or on the weights of the first step (modelled)"
        }
        _ => "is computed with the weights of the first step, also in later ones (modelled)",
    };
    format!("what {first}{others} gives {with}")
}

/// What was decided without knowing: the first places each in a sentence, the others in one.
fn all_decided(decisions: &[Decision]) -> Vec<String> {
    let shown = if decisions.len() <= PLACES + 1 { decisions.len() } else { PLACES };
    let mut said: Vec<String> = decisions.iter().take(shown).map(decided).collect();
    if shown < decisions.len() {
        let others = decisions.len() - shown;
        said.push(format!("{others} other places do so too: `decisions` of --json has them all"));
    }
    said
}

/// What was decided without knowing, as a sentence.
fn decided(decision: &Decision) -> String {
    let below = match (&decision.place, &decision.library) {
        (Some(_), Some((file, line))) => format!(" (in {file}:{line})"),
        _ => String::new(),
    };
    let why = match decision.why.as_str() {
        "dear" => "values that would take too long to compute",
        _ => "values that are not known",
    };
    let assumed = match decision.assumed.as_str() {
        "given" => "what --assume says",
        "most" | "largest" => "the most that they can give",
        ZERO => "zero",
        _ => "the least that they can give",
    };
    let times =
        if decision.count == 1 { String::new() } else { format!(", {} times", decision.count) };
    if matches!(decision.assumed.as_str(), "one" | "either") {
        let goes = format!("{decision}{below} reads {why}, and the script goes by that{times}");
        return format!("{goes}: 1 stands for the number behind it");
    }
    format!("{decision}{below} asks for {why}{times}: {assumed} was assumed")
}

/// What a user can do about the first place where something was assumed.
fn can_be_said(run: &Run) -> Option<String> {
    let open = run.decisions.iter().filter(|decision| decision.is_open());
    let (file, line) = open.filter_map(|decision| decision.place.as_ref()).next()?;
    let name = file.rsplit('/').next().unwrap_or(file);
    Some(format!("{IF_KNOWN} `--assume {name}:{line}=NUMBER` says what is found there"))
}
