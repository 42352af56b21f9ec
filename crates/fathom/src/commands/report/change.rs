//! A change as a text: of a config file, of the command, or of the code.

use std::fs;

use anatomy::Peaks;
use fit::plan::Plan;
use fit::{Lever, Setting};
use report::document::{Change, Edit, Sizes};

use super::lab::Lab;
use crate::configs;
use crate::shell;

/// Lines around a change.
const AROUND: usize = 3;

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
    let of_script: Vec<&Lever> =
        plan.levers.iter().filter(|lever| matches!(lever, Lever::Knob { .. })).collect();
    let settings = of_script.iter().filter_map(|lever| match lever {
        Lever::Knob { name, value } => edit(lab, name, value),
        _ => None,
    });
    let of_settings: Vec<String> = settings.map(|edit| edit.text).collect();
    let in_code = plan.levers.len() != of_script.len();
    let (edit, applied) = match in_code {
        true => (
            Edit { language: "diff", text: lab.patch(plan) },
            "Measured with this change applied by Fathom inside the process, the code as it is.",
        ),
        false => (
            Edit { language: "diff", text: of_settings.join("\n") },
            "Measured with exactly this change, in a copy of the file.",
        ),
    };
    Change {
        what: name(&plan.levers),
        results: plan.label.name().to_owned(),
        edit,
        applied: applied.to_owned(),
        before: Sizes::of(before),
        after: Sizes::of(&plan.peaks),
    }
}

/// A setting at another value as a diff of its file, or as the command to type.
pub(super) fn edit(lab: &Lab, name: &str, value: &str) -> Option<Edit> {
    let knob = lab.fitting.knobs.iter().find(|knob| knob.name == *name)?;
    let mut setting: Setting = lab.fitting.runner.as_given();
    let before = setting.words.clone();
    knob.set(value, &mut setting).ok()?;
    let mut text = String::new();
    for change in &setting.files {
        let old = fs::read_to_string(&change.path).ok()?;
        let new = configs::changed(&old, change).ok()?;
        text += &unified(&change.path, &old, &new);
    }
    if setting.words != before || !setting.environment.is_empty() {
        let variables = setting.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let words: Vec<String> = variables.chain(setting.words.iter().cloned()).collect();
        text += &format!(
            "-{}\n+{}\n",
            shell::line(before.iter().map(String::as_str)),
            shell::line(words.iter().map(String::as_str))
        );
    }
    (!text.is_empty()).then_some(Edit { language: "diff", text })
}

/// One place that differs, as a unified diff that `patch` and `git apply` take.
fn unified(path: &str, old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - same;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let (first, after) = (same.saturating_sub(AROUND), tail.min(AROUND));
    let rows = |lines: &[&str], sign: char| {
        lines.iter().map(|line| format!("{sign}{line}\n")).collect::<String>()
    };
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let counts = [old_end + after - first, new_end + after - first];
    format!(
        "--- a/{path}\n+++ b/{path}\n@@ -{0},{1} +{0},{2} @@\n{3}{4}{5}{6}",
        first + 1,
        counts[0],
        counts[1],
        rows(&old[first..same], ' '),
        rows(&old[same..old_end], '-'),
        rows(&new[same..new_end], '+'),
        rows(&old[old_end..old_end + after], ' ')
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_what_changes_and_three_lines_around() {
        let old = "a\nb\nc\nd\ne: 1\nf\n";
        let diff = unified("x.yaml", old, &old.replace("e: 1", "e: 2"));
        assert_eq!(
            diff,
            "--- a/x.yaml\n+++ b/x.yaml\n@@ -2,5 +2,5 @@\n b\n c\n d\n-e: 1\n+e: 2\n f\n"
        );
        let added = unified("x.yaml", "a\n", "a\nb: 1\n");
        assert_eq!(added, "--- a/x.yaml\n+++ b/x.yaml\n@@ -1,1 +1,2 @@\n a\n+b: 1\n");
    }
}
