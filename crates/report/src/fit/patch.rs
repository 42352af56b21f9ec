//! A plan as what to write, and where.

use ::fit::Lever;
use ::fit::patch::Patch;
use ::fit::plan::{Plan, Written};

use super::Fit;

/// A setting of the user's: its name, its value, and how the user would write it.
type Knob = (String, String, String);

/// Places of the code that are listed.
const PLACES: usize = 4;

/// A diff that was applied and run, with what else is to be given; else lines to write, each lever with its place, and what
/// is in the way of a diff.
pub fn patch(fit: &Fit, plan: &Plan) -> String {
    patch_of(plan, &fit.knobs)
}

/// The same; `knobs` has name, value and how the user would write it.
pub fn patch_of(plan: &Plan, knobs: &[Knob]) -> String {
    match &plan.written {
        Some(Written::Patch { patch, .. }) => written(plan, patch, knobs),
        Some(Written::InTheWay(why)) => {
            let why = why.iter().map(|why| format!("no patch: {why}\n"));
            by_hand(plan, knobs) + &why.collect::<String>()
        }
        None => by_hand(plan, knobs),
    }
}

fn written(plan: &Plan, patch: &Patch, knobs: &[Knob]) -> String {
    let mut text = String::new();
    for (name, settings) in &patch.environment {
        text += &format!("{name}={settings}   # in the environment of the command\n");
    }
    text += &settings(plan, knobs);
    if !patch.words.is_empty() {
        text += &format!("{}   # behind the command\n", patch.words.join(" "));
    }
    if let Some(folder) = &patch.folder {
        text += &format!("# in {folder}:\n");
    }
    text + &patch.diff()
}

/// Settings of the user's, as they would be written.
fn settings(plan: &Plan, knobs: &[Knob]) -> String {
    let line = |lever: &Lever| match lever {
        Lever::Knob { name, value } => {
            let written = knobs.iter().find(|row| row.0 == *name && row.1 == *value);
            format!("{name}: {}\n", written.map_or(value.as_str(), |row| row.2.as_str()))
        }
        _ => String::new(),
    };
    plan.levers.iter().map(line).collect()
}

fn by_hand(plan: &Plan, knobs: &[Knob]) -> String {
    let mut text = settings(plan, knobs);
    for lever in &plan.levers {
        text += &match lever {
            Lever::Knob { .. } => String::new(),
            other => of_lever(other, plan),
        };
    }
    text
}

fn of_lever(lever: &Lever, plan: &Plan) -> String {
    if let Lever::Own(own) = lever {
        return format!("{}\n", own.shown);
    }
    let Some(fact) = plan.facts.iter().find(|fact| fact.lever == lever.id()) else {
        return String::new();
    };
    let places: Vec<&str> = fact.places.iter().take(PLACES).map(String::as_str).collect();
    let at = if places.is_empty() { String::new() } else { format!(" at {}", places.join(", ")) };
    let mut text = format!("{}{at}\n", lever.id());
    let change = match lever {
        Lever::Allocator(settings) => fact.change.replace('…', settings),
        Lever::Accumulate(parts) => {
            let sizes = fact.sites.join("\n");
            format!("{sizes}\n{}", fact.change.replace("parts", &parts.to_string()))
        }
        _ => fact.change.clone(),
    };
    for line in change.lines() {
        text += &format!("  + {line}\n");
    }
    if let Lever::Checkpoint(modules) | Lever::Selective(modules) = lever {
        text += &format!("    modules: {}\n", folded(modules).join(", "));
    }
    text
}

/// `blocks.0`, `blocks.1`, `blocks.2` as `blocks.{0-2}`.
pub(super) fn folded(paths: &[String]) -> Vec<String> {
    let mut groups: Vec<(String, String, Vec<u64>)> = Vec::new();
    for path in paths {
        let parts: Vec<&str> = path.split('.').collect();
        let at = parts.iter().rposition(|part| part.parse::<u64>().is_ok());
        let Some((at, number)) = at.and_then(|at| Some((at, parts[at].parse::<u64>().ok()?)))
        else {
            groups.push((path.clone(), String::new(), Vec::new()));
            continue;
        };
        let key = (parts[..at].join("."), parts[at + 1..].join("."));
        match groups
            .iter_mut()
            .find(|group| group.0 == key.0 && group.1 == key.1 && !group.2.is_empty())
        {
            Some(group) => group.2.push(number),
            None => groups.push((key.0, key.1, vec![number])),
        }
    }
    let joined = |(before, after, mut numbers): (String, String, Vec<u64>)| {
        numbers.sort_unstable();
        let middle = match numbers.as_slice() {
            [] => return before,
            [one] => one.to_string(),
            all => format!("{{{}}}", ranges(all)),
        };
        [before, middle, after]
            .iter()
            .filter(|part| !part.is_empty())
            .cloned()
            .collect::<Vec<_>>()
            .join(".")
    };
    groups.into_iter().map(joined).collect()
}

/// `0-2,5` of 0, 1, 2, 5.
fn ranges(numbers: &[u64]) -> String {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == number => *end = number,
            _ => parts.push((number, number)),
        }
    }
    let text = |(start, end): &(u64, u64)| match start == end {
        true => start.to_string(),
        false => format!("{start}-{end}"),
    };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_modules_are_folded() {
        let paths: Vec<String> = ["a.0.b", "a.1.b", "a.3.b", "head", "a.0.c"]
            .iter()
            .map(|path| (*path).to_owned())
            .collect();
        assert_eq!(folded(&paths), ["a.{0-1,3}.b", "head", "a.0.c"]);
    }
}
