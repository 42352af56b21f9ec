//! A change as a text: of a config file, of the command, or of the code.

use std::collections::BTreeMap;
use std::fs;

use anatomy::Peaks;
use fit::patch::{Changed, Patch};
use fit::plan::{Plan, Written};
use fit::{Lever, Setting};
use report::document::{Change, Edit, Sizes};

use super::lab::Lab;
use crate::configs;
use crate::shell;

/// How a change was measured.
const IN_A_COPY: &str =
    "Measured with exactly this change: it was applied to a copy, and the copy was run.";
const INSIDE: &str =
    "Measured with this change applied by Fathom inside the process, the code as it is.";

/// `checkpoint + amp-bf16`, `batch_size 32`
pub(super) fn name(levers: &[Lever]) -> String {
    let one = |lever: &Lever| match lever {
        Lever::Knob { name, value } => format!("{name} {value}"),
        Lever::Freeze(modules) => format!("freeze {}", modules.join(", ")),
        Lever::Accumulate(parts) => format!("accumulate in {parts} parts"),
        Lever::Own(own) => own.shown.clone(),
        other => other.id().to_owned(),
    };
    levers.iter().map(one).collect::<Vec<_>>().join(" + ")
}

/// The plan with its text, and the peaks that were measured with it.
pub(super) fn of(lab: &Lab, plan: &Plan, before: &Peaks) -> Change {
    let (edit, applied, in_the_way) = match &plan.written {
        Some(Written::Patch { patch, .. }) => {
            (of_patch(lab, &plan.levers, patch), IN_A_COPY, Vec::new())
        }
        written => match only_settings(lab, &plan.levers) {
            Some(edit) => (edit, IN_A_COPY, Vec::new()),
            None => (by_hand(lab, plan), INSIDE, why_not(written.as_ref())),
        },
    };
    Change {
        what: name(&plan.levers),
        results: plan.label.name().to_owned(),
        edit,
        in_the_way,
        applied: applied.to_owned(),
        before: Sizes::of(before),
        after: Sizes::of(&plan.peaks),
    }
}

/// Settings at other values, as a diff of their files and as the command to type; `None` if nothing is written.
pub(super) fn of_settings(lab: &Lab, values: &[(&str, &str)]) -> Option<Edit> {
    let setting = turned(lab, values)?;
    let edit = written(lab, &setting, Patch { files: files(&setting)?, ..Patch::default() });
    (!(edit.text.is_empty() && edit.command.is_empty())).then_some(edit)
}

fn only_settings(lab: &Lab, levers: &[Lever]) -> Option<Edit> {
    let values = values(levers);
    (values.len() == levers.len()).then(|| of_settings(lab, &values)).flatten()
}

fn values(levers: &[Lever]) -> Vec<(&str, &str)> {
    let value = |lever| match lever {
        &Lever::Knob { ref name, ref value } => Some((name.as_str(), value.as_str())),
        _ => None,
    };
    levers.iter().filter_map(value).collect()
}

/// The diff of a plan, with its settings.
fn of_patch(lab: &Lab, levers: &[Lever], patch: &Patch) -> Edit {
    let mut setting = turned(lab, &values(levers)).unwrap_or_else(|| lab.fitting.runner.as_given());
    setting.words.extend(patch.words.clone());
    setting.environment.extend(patch.environment.clone());
    let of_settings = files(&setting).unwrap_or_default();
    let all = of_settings.into_iter().chain(patch.files.iter().cloned()).collect();
    written(lab, &setting, Patch { files: all, ..patch.clone() })
}

/// The command with settings at these values.
fn turned(lab: &Lab, values: &[(&str, &str)]) -> Option<Setting> {
    let mut setting = lab.fitting.runner.as_given();
    for (name, value) in values {
        let knob = lab.fitting.knobs.iter().find(|knob| knob.name == *name)?;
        knob.set(value, &mut setting).ok()?;
    }
    Some(setting)
}

/// Config files before and after.
fn files(setting: &Setting) -> Option<Vec<Changed>> {
    let mut files: BTreeMap<&str, Changed> = BTreeMap::new();
    for change in &setting.files {
        if !files.contains_key(change.path.as_str()) {
            let before = fs::read_to_string(&change.path).ok()?;
            let (file, name, after) = (change.path.clone(), change.path.clone(), before.clone());
            files.insert(&change.path, Changed { file, name, before, after });
        }
        let of_file = files.get_mut(change.path.as_str())?;
        of_file.after = configs::changed(&of_file.after, change).ok()?;
    }
    Some(files.into_values().collect())
}

/// The diff, and the command where it is another one.
fn written(lab: &Lab, setting: &Setting, patch: Patch) -> Edit {
    let before = lab.fitting.runner.as_given();
    let is_same = setting.words == before.words && setting.environment == before.environment;
    let variables = setting.environment.iter().map(|(name, value)| format!("{name}={value}"));
    let words: Vec<String> = variables.chain(setting.words.iter().cloned()).collect();
    Edit {
        language: "diff",
        text: patch.diff(),
        folder: patch.folder.clone().unwrap_or_default(),
        command: match is_same {
            true => String::new(),
            false => shell::line(words.iter().map(String::as_str)),
        },
    }
}

/// What to write, where no patch could be made of it.
fn by_hand(lab: &Lab, plan: &Plan) -> Edit {
    let plan = Plan { written: None, ..plan.clone() };
    Edit { language: "text", text: lab.patch(&plan), ..Edit::default() }
}

fn why_not(written: Option<&Written>) -> Vec<String> {
    match written {
        Some(Written::InTheWay(why)) => why.clone(),
        _ => Vec::new(),
    }
}
