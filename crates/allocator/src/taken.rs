//! The settings a recording was made under. Its torch has taken them: whatever looks wrong about them is not known
//! to us, as a key of a newer torch is. It is left out, and the replay shows whether that matters.

use recording::About;

use crate::conf::{is_known, pairs};
use crate::settings::{Error, Settings};

impl Settings {
    /// The settings a recording was made under, as far as it says and they are known; an error if nothing can be
    /// replayed.
    pub fn of(about: &About) -> Result<Settings, Error> {
        let (settings, _) = taken(about)?;
        let memory = (about.memory_bytes != 0).then_some(about.memory_bytes);
        Ok(Settings { memory, context: about.context_bytes, ..settings })
    }

    /// What of a recording's settings [`Settings::of`] leaves out: keys, and pairs with a value that is not known.
    pub fn unknown(about: &About) -> Vec<String> {
        taken(about).map(|(_, unknown)| unknown).unwrap_or_default()
    }
}

fn taken(about: &About) -> Result<(Settings, Vec<String>), Error> {
    let mut settings = Settings::for_torch(&about.torch)?.before_conf();
    let mut unknown = Vec::new();
    for part in parts(&about.allocator_settings) {
        // A key counts in any version: a snapshot says of its torch only how old it is at least.
        let outcome = pairs(part).map(|pairs| pairs.into_iter().next().unwrap_or_default());
        match outcome {
            Ok((key, _)) if !is_known(&key) => unknown.push(key),
            Ok((key, value)) => match settings.apply(&key, &value) {
                Err(error) if key == "backend" => return Err(error),
                Err(_) => unknown.push(format!("{key}:{value}")),
                Ok(()) => {}
            },
            Err(_) => unknown.push(part.to_owned()),
        }
    }
    Ok((settings.after_conf(), unknown))
}

/// Splits at commas that stand in no brackets.
fn parts(conf: &str) -> impl Iterator<Item = &str> {
    let mut open = 0usize;
    let parts = conf.split(move |letter| {
        match letter {
            '[' => open += 1,
            ']' => open = open.saturating_sub(1),
            _ => {}
        }
        letter == ',' && open == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::MIB;

    fn taken(torch: &str, conf: &str) -> Result<(Settings, Vec<String>), Error> {
        let (torch, allocator_settings) = (torch.to_owned(), conf.to_owned());
        super::taken(&About { torch, allocator_settings, ..About::default() })
    }

    #[test]
    fn what_is_known_counts_and_what_is_not_is_listed() {
        let conf = "speed:[1,2], max_split_size_mb:64,flag,expandable_segments:maybe, large_segment_size_mb:32";
        let (settings, unknown) = taken("2.16.0", conf).unwrap();
        assert_eq!(unknown, ["speed", "flag", "expandable_segments:maybe"]);
        assert_eq!((settings.max_split_size, settings.large_segment_size), (64 * MIB, 32 * MIB));
        assert_eq!(settings.max_non_split_rounding, 32 * MIB);
        assert!(!settings.expandable_segments);
        // The same without what is not known.
        let known = "max_split_size_mb:64,large_segment_size_mb:32";
        let newest = Settings::for_torch("2.16.0").unwrap();
        assert_eq!(newest.with_conf(known).unwrap(), settings);
        assert!(newest.with_conf(conf).is_err(), "whoever asks for it is told");
    }

    #[test]
    fn a_key_of_a_newer_version_counts() {
        let (settings, unknown) = taken("2.10", "large_segment_size_mb:64").unwrap();
        assert_eq!((settings.large_segment_size, unknown), (64 * MIB, Vec::new()));
    }

    #[test]
    fn an_allocator_that_does_not_cache_is_refused() {
        let error = taken("2.6", "backend:cudaMallocAsync").unwrap_err().to_string();
        assert_eq!(error, "`backend:cudaMallocAsync` does not cache: it cannot be replayed");
        assert!(taken("1.12", "").is_err());
    }
}
