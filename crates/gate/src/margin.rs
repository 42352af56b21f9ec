//! How much growth is allowed.

use std::fmt;

/// Without a margin given: 2 %. Peaks are the same in every run of the same software; this is what a
/// change of a minor version may cost.
pub const DEFAULT_MARGIN: Margin = Margin::Share(200);

/// Allowed growth over the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Margin {
    /// Hundredths of a percent of what there was.
    Share(u64),
    Bytes(u64),
}

impl Margin {
    /// Reads `2%`, `0.5 %`, `64MiB`, `0`.
    pub fn parse(text: &str) -> Result<Margin, String> {
        let text = text.trim();
        let Some(number) = text.strip_suffix('%') else {
            return match text {
                "0" => Ok(Margin::Bytes(0)),
                _ => anatomy::bytes::parse(text).map(Margin::Bytes).map_err(|_| wrong(text)),
            };
        };
        let percent: f64 = number.trim().parse().map_err(|_| wrong(text))?;
        if !(0.0..=1000.0).contains(&percent) {
            return Err(format!("`{text}` is not between 0 % and 1000 %"));
        }
        Ok(Margin::Share((percent * 100.0).round() as u64))
    }

    /// The most that is allowed where there were `before` bytes.
    pub fn most(self, before: u64) -> u64 {
        let more = match self {
            Margin::Bytes(bytes) => bytes,
            Margin::Share(share) => {
                u64::try_from(u128::from(before) * u128::from(share) / 10_000).unwrap_or(u64::MAX)
            }
        };
        before.saturating_add(more)
    }
}

fn wrong(text: &str) -> String {
    format!("`{text}` is not a margin: write `2%`, `64MiB` or `0`")
}

impl fmt::Display for Margin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Margin::Bytes(0) => write!(formatter, "0"),
            Margin::Bytes(bytes) => write!(formatter, "{}", anatomy::bytes::text(*bytes)),
            Margin::Share(share) => write!(formatter, "{} %", *share as f64 / 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_read_as_people_write_them() {
        assert_eq!(Margin::parse("2%"), Ok(DEFAULT_MARGIN));
        assert_eq!(Margin::parse(" 0.5 % "), Ok(Margin::Share(50)));
        assert_eq!(Margin::parse("64MiB"), Ok(Margin::Bytes(64 << 20)));
        assert_eq!(Margin::parse("0"), Ok(Margin::Bytes(0)));
        // A size needs a unit.
        for text in ["", "%", "lots", "-1%", "2000%", "nan%", "64", "16G"] {
            assert!(Margin::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_limit_is_exact() {
        assert_eq!(DEFAULT_MARGIN.most(1000), 1020);
        assert_eq!(Margin::Bytes(0).most(7), 7);
        assert_eq!(Margin::Share(100_000).most(u64::MAX), u64::MAX);
        assert_eq!(
            (DEFAULT_MARGIN.to_string(), Margin::Share(50).to_string()),
            ("2 %".into(), "0.5 %".into())
        );
        assert_eq!(Margin::Bytes(64 << 20).to_string(), "64.0 MiB");
    }
}
