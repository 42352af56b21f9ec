//! Which cards run code that was built for given targets.
//!
//! Code for `sm_86` runs on every card of that major version from there on. `sm_90a` runs on 9.0 alone,
//! and `sm_100f` on its family, which is the major version too. `compute_80` is compiled by the driver for
//! any card from there on.

/// Whether one of the targets, such as `sm_86` or `compute_90`, runs on a card of this compute capability;
/// `None` if no target can be read.
pub fn has_kernels(targets: &[String], capability: (u32, u32)) -> Option<bool> {
    let mut readable = targets.iter().filter_map(|target| Target::read(target)).peekable();
    readable.peek()?;
    Some(readable.any(|target| target.runs_on(capability)))
}

struct Target {
    version: (u32, u32),
    /// Compiled by the driver for the card that is there.
    is_portable: bool,
    /// For the features of one card alone.
    is_exact: bool,
}

impl Target {
    fn read(text: &str) -> Option<Target> {
        let (kind, rest) = text.split_once('_')?;
        let digits = rest.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let number: u32 = digits.parse().ok()?;
        let is_portable = match kind {
            "sm" => false,
            "compute" => true,
            _ => return None,
        };
        let version = (number / 10, number % 10);
        Some(Target { version, is_portable, is_exact: rest.ends_with('a') })
    }

    fn runs_on(&self, card: (u32, u32)) -> bool {
        match (self.is_exact, self.is_portable) {
            (true, _) => self.version == card,
            (false, true) => self.version <= card,
            (false, false) => self.version.0 == card.0 && self.version.1 <= card.1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(targets: &[&str], major: u32, minor: u32) -> Option<bool> {
        let targets: Vec<String> = targets.iter().map(|target| (*target).to_owned()).collect();
        has_kernels(&targets, (major, minor))
    }

    #[test]
    fn cards_run_what_is_not_newer_and_of_their_major_version() {
        let torch = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"];
        let good = [(7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (12, 0), (12, 1)];
        assert!(good.iter().all(|(major, minor)| runs(&torch, *major, *minor) == Some(true)));
        let bad = [(6, 0), (6, 1), (7, 0), (7, 2), (11, 0)];
        assert!(bad.iter().all(|(major, minor)| runs(&torch, *major, *minor) == Some(false)));
    }

    #[test]
    fn some_targets_are_wider_or_narrower() {
        assert_eq!(runs(&["compute_80"], 12, 0), Some(true));
        assert_eq!(runs(&["compute_80"], 7, 5), Some(false));
        assert_eq!([runs(&["sm_90a"], 9, 0), runs(&["sm_90a"], 9, 1)], [Some(true), Some(false)]);
        assert_eq!(runs(&["sm_100f"], 10, 3), Some(true));
        assert_eq!([runs(&[], 8, 0), runs(&["gfx942"], 8, 0)], [None, None]);
    }
}
