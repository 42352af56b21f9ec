//! How the peak and its causes grow with a knob, in one sentence each.

use anstyle::Style;

use super::Scaling;
use crate::lines::Lines;

/// A law within this of a whole power is named by it.
const NEAR: f64 = 0.05;

/// `growth   the peak is linear in batch; attention-matrices are 0.4 % of it and quadratic in tokens`
pub(super) fn growth(all: &[Scaling], lines: &mut Lines) {
    let mut knobs: Vec<&str> = all.iter().map(|scaling| scaling.knob.as_str()).collect();
    knobs.dedup();
    for knob in knobs {
        let of: Vec<&Scaling> = all.iter().filter(|scaling| scaling.knob == knob).collect();
        let parts: Vec<String> = of.iter().map(|scaling| part(scaling)).collect();
        lines.section(Style::new(), "growth", [parts.join("; ")]);
    }
}

fn part(scaling: &Scaling) -> String {
    let how = if scaling.exact { "" } else { " (fitted)" };
    let power = power(scaling.exponent);
    let of = if power == "independent" { "of" } else { "in" };
    match scaling.cause {
        None => format!("the allocated peak is {power} {of} {}{how}", scaling.knob),
        Some(cause) => {
            let share = 100.0 * scaling.share;
            let share = if share < 1.0 { format!("{share:.1}") } else { format!("{share:.0}") };
            format!("{cause}: {share} % of it, {power} {of} {}{how}", scaling.knob)
        }
    }
}

fn power(exponent: f64) -> String {
    let names = ["independent", "linear", "quadratic", "cubic"];
    let whole = exponent.round();
    match names.get(whole as usize) {
        Some(name) if (exponent - whole).abs() <= NEAR => (*name).to_owned(),
        _ => format!("as a power of {exponent:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Reader;

    #[test]
    fn growth_is_one_sentence_a_knob() {
        let scaling = |cause, exponent, share, exact| Scaling {
            knob: "groups".to_owned(),
            cause,
            share,
            exponent,
            exact,
        };
        let all = [
            scaling(None, 1.0, 1.0, true),
            scaling(Some("attention-matrices"), 2.02, 0.004, false),
            scaling(Some("model-state"), 0.0, 0.6, true),
        ];
        let mut lines = Lines::new(Reader::plain(100));
        growth(&all, &mut lines);
        assert_eq!(
            lines.text().split_whitespace().collect::<Vec<_>>().join(" "),
            "growth the allocated peak is linear in groups; attention-matrices: 0.4 % of it, quadratic in \
             groups (fitted); model-state: 60 % of it, independent of groups"
        );
        assert_eq!(power(1.5), "as a power of 1.50");
    }
}
