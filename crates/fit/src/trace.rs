//! Where a size comes from: which settings move it, and how, by what it became when each was varied alone.

/// How a size follows one setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Follows {
    /// It does not move.
    Not,
    /// As a power of it: 1 for twice as much with twice the value, -1 for half of it.
    Power(i32),
    /// `a · value + b`, with whole numbers or simple fractions, over at least three values.
    Line { slope: f64, constant: i64 },
    /// It moves, and nobody knows how.
    Somehow,
}

/// One setting, and the size at each value that was tried: the command's own first.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub knob: String,
    pub sizes: Vec<(i64, u64)>,
}

/// Powers that are looked for.
const POWERS: [i32; 6] = [1, 2, 3, -1, -2, -3];

/// How a size follows a setting.
pub fn follows(sizes: &[(i64, u64)]) -> Follows {
    let Some(&(value, size)) = sizes.first() else { return Follows::Not };
    let moved: Vec<(i64, u64)> = sizes.iter().copied().filter(|row| row.0 != value).collect();
    if moved.iter().all(|row| row.1 == size) {
        return Follows::Not;
    }
    let is_power = |power: &i32| {
        moved.iter().all(|&(other, became)| {
            let factor = (other as f64 / value as f64).powi(*power);
            (size as f64 * factor - became as f64).abs() < 1e-6 * size as f64
        })
    };
    if let Some(power) = POWERS.into_iter().find(|power| is_power(power)) {
        return Follows::Power(power);
    }
    match moved.as_slice() {
        [(at, became), rest @ ..] if !rest.is_empty() => {
            let slope = (*became as f64 - size as f64) / (at - value) as f64;
            let constant = size as f64 - slope * value as f64;
            let is_whole = (constant - constant.round()).abs() < 1e-6;
            let holds =
                |row: &(i64, u64)| (slope * row.0 as f64 + constant - row.1 as f64).abs() < 1e-6;
            match is_whole && rest.iter().all(holds) {
                true => Follows::Line { slope, constant: constant.round() as i64 },
                false => Follows::Somehow,
            }
        }
        _ => Follows::Somehow,
    }
}

/// A size as a product of settings, such as `batch_size 128 × num_group 64 × 2`. Empty if nothing moves it.
pub fn made_of(size: u64, seen: &[Seen]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let (mut above, mut below): (u64, u64) = (1, 1);
    // The largest first, as people write a product.
    let mut seen: Vec<&Seen> = seen.iter().collect();
    seen.sort_by_key(|one| std::cmp::Reverse(one.sizes.first().map_or(0, |row| row.0)));
    for Seen { knob, sizes } in seen {
        let Some(&(value, _)) = sizes.first() else { continue };
        match follows(sizes) {
            Follows::Not => {}
            Follows::Power(power) => {
                let times =
                    (value.unsigned_abs()).checked_pow(power.unsigned_abs()).unwrap_or(u64::MAX);
                let text = match power.unsigned_abs() {
                    1 => format!("{knob} {value}"),
                    much => format!("({knob} {value}){}", superscript(much)),
                };
                if power < 0 {
                    below = below.saturating_mul(times);
                    parts.push(format!("1 / {text}"));
                } else {
                    above = above.saturating_mul(times);
                    parts.push(text);
                }
            }
            Follows::Line { slope, constant } => return line(knob, value, slope, constant),
            Follows::Somehow => return format!("moves with {knob}"),
        }
    }
    if parts.is_empty() {
        return String::new();
    }
    let rest = u128::from(size) * u128::from(below);
    let factor = match rest.is_multiple_of(u128::from(above)) {
        true => (rest / u128::from(above)).to_string(),
        false => format!("{:.3}", rest as f64 / above as f64),
    };
    if factor != "1" {
        parts.push(factor);
    }
    parts.join(" × ")
}

/// `½ × num_group 64 + 1`
fn line(knob: &str, value: i64, slope: f64, constant: i64) -> String {
    let slope = match slope {
        one if (one - 1.0).abs() < 1e-9 => String::new(),
        half if (half - 0.5).abs() < 1e-9 => "½ × ".to_owned(),
        other if (other - other.round()).abs() < 1e-9 => format!("{other:.0} × "),
        other => format!("{other:.3} × "),
    };
    let sign = if constant < 0 { "−" } else { "+" };
    format!("{slope}{knob} {value} {sign} {}", constant.unsigned_abs())
}

fn superscript(number: u32) -> &'static str {
    match number {
        2 => "²",
        3 => "³",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(knob: &str, sizes: &[(i64, u64)]) -> Seen {
        Seen { knob: knob.to_owned(), sizes: sizes.to_vec() }
    }

    #[test]
    fn a_size_is_the_product_of_what_moves_it() {
        let batch = seen("batch", &[(128, 16384), (64, 8192)]);
        let group = seen("group", &[(64, 16384), (32, 8192), (128, 32768)]);
        let idle = seen("seed", &[(2, 16384), (1, 16384)]);
        assert_eq!(made_of(16384, &[batch.clone(), group, idle]), "batch 128 × group 64 × 2");
        assert_eq!(made_of(7, &[seen("seed", &[(2, 7), (1, 7)])]), "");
        assert_eq!(
            made_of(16384, &[batch, seen("patch", &[(2, 16384), (4, 8192)])]),
            "batch 128 × 1 / patch 2 × 256"
        );
    }

    #[test]
    fn squares_lines_and_what_is_neither() {
        assert_eq!(made_of(4096, &[seen("side", &[(64, 4096), (32, 1024)])]), "(side 64)²");
        assert_eq!(
            made_of(33, &[seen("group", &[(64, 33), (32, 17), (128, 65)])]),
            "½ × group 64 + 1"
        );
        // Two values alone do not make a line.
        assert_eq!(made_of(33, &[seen("group", &[(64, 33), (32, 17)])]), "moves with group");
        assert_eq!(follows(&[(4, 10), (2, 9), (8, 30)]), Follows::Somehow);
    }
}
