//! `PYTORCH_CUDA_ALLOC_CONF`: read with the rules of the version it is meant for.

use crate::settings::{Error, MIB, Settings, UNLIMITED, Version};

/// Does any version know this key?
pub(crate) fn is_known(key: &str) -> bool {
    KEYS.iter().any(|(name, ..)| *name == key)
}

/// Keys, and the versions that know them: from the first to before the second.
const KEYS: &[(&str, Version, Version)] = &[
    ("max_split_size_mb", (1, 13), (9, 0)),
    ("garbage_collection_threshold", (1, 13), (9, 0)),
    ("roundup_power2_divisions", (1, 13), (9, 0)),
    ("roundup_bypass_threshold_mb", (1, 13), (2, 0)),
    ("backend", (2, 0), (9, 0)),
    ("expandable_segments", (2, 1), (9, 0)),
    ("release_lock_on_cudamalloc", (2, 2), (9, 0)),
    ("pinned_use_cuda_host_register", (2, 2), (9, 0)),
    ("pinned_num_register_threads", (2, 2), (9, 0)),
    ("pinned_use_background_threads", (2, 6), (9, 0)),
    ("max_non_split_rounding_mb", (2, 6), (9, 0)),
    ("graph_capture_record_stream_reuse", (2, 9), (9, 0)),
    ("per_process_memory_fraction", (2, 10), (9, 0)),
    ("pinned_reserve_segment_size_mb", (2, 10), (9, 0)),
    ("large_segment_size_mb", (2, 11), (9, 0)),
    ("throw_on_cudamalloc_oom", (2, 12), (9, 0)),
    ("pinned_free_catch_all", (2, 12), (9, 0)),
    ("pinned_max_round_threshold_mb", (2, 13), (9, 0)),
    ("pinned_max_cached_size_mb", (2, 13), (9, 0)),
    ("expandable_segments_reserve", (2, 15), (9, 0)),
    ("expandable_segments_reserve_by_class", (2, 15), (9, 0)),
];

/// In place of a rounding that no text has given.
const NOT_SAID: u64 = 0;

impl Settings {
    /// These settings after PyTorch parsed `conf`, as at its start or by `_set_allocator_settings`; an error
    /// where this torch has one.
    pub fn with_conf(&self, conf: &str) -> Result<Settings, Error> {
        let mut settings = self.before_conf();
        for (key, value) in pairs(conf)? {
            settings.must_have(&key)?;
            settings.apply(&key, &value)?;
        }
        Ok(settings.after_conf())
    }

    /// Mirrors `CUDAAllocatorConfig::parseArgs` (`AcceleratorAllocatorConfig` since 2.10): split size,
    /// round-up table and threshold go back to their defaults first, the others stay.
    pub(crate) fn before_conf(&self) -> Settings {
        Settings {
            max_split_size: UNLIMITED,
            garbage_collection_threshold: 0.0,
            roundup_power2_divisions: [0; 16],
            max_non_split_rounding: match self.version {
                version if version < (2, 10) => self.max_non_split_rounding,
                _ => NOT_SAID,
            },
            ..self.clone()
        }
    }

    pub(crate) fn after_conf(mut self) -> Settings {
        if self.max_non_split_rounding == NOT_SAID {
            self.max_non_split_rounding = self.large_segment_size;
        }
        self
    }

    /// Refuses a key that this torch would refuse.
    fn must_have(&self, key: &str) -> Result<(), Error> {
        let row = KEYS.iter().find(|(name, ..)| *name == key);
        let Some((_, since, until)) = row else {
            return Err(Error(format!("`{key}` is not a setting of PyTorch's allocator")));
        };
        if self.version < *since || *until <= self.version {
            let (major, minor) = self.version;
            return Err(Error(format!("torch {major}.{minor} has no setting `{key}`")));
        }
        Ok(())
    }

    /// Takes one pair; nothing changes if there is an error.
    pub(crate) fn apply(&mut self, key: &str, value: &str) -> Result<(), Error> {
        match key {
            "max_split_size_mb" => self.max_split_size = self.splittable(key, value)?,
            "max_non_split_rounding_mb" => {
                self.max_non_split_rounding = self.splittable(key, value)?;
            }
            "garbage_collection_threshold" => {
                self.garbage_collection_threshold = value
                    .parse::<f64>()
                    .ok()
                    .filter(|share| 0.0 < *share && *share < 1.0)
                    .ok_or(Error(format!("`{key}:{value}` is not between 0 and 1")))?;
            }
            "roundup_power2_divisions" => {
                self.roundup_power2_divisions = divisions(self.version, value)?;
            }
            "roundup_bypass_threshold_mb" => {
                self.roundup_bypass_threshold = megabytes(key, value)?;
            }
            "expandable_segments" => self.expandable_segments = truth(key, value)?,
            "throw_on_cudamalloc_oom" => self.throw_on_cudamalloc_oom = truth(key, value)?,
            "per_process_memory_fraction" => {
                let share = value.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
                let refusal = Error(format!("`{key}:{value}` is not between 0 and 1"));
                self.memory_fraction = Some(share.ok_or(refusal)?);
            }
            "large_segment_size_mb" => {
                let size = Some(megabytes(key, value)?).filter(|size| 10 * MIB < *size);
                let refusal = Error(format!("`{key}:{value}` is not above 10"));
                self.large_segment_size = size.ok_or(refusal)?;
            }
            "backend" if value == "native" => {}
            "backend" => {
                return Err(Error(format!(
                    "`backend:{value}` does not cache: it cannot be replayed"
                )));
            }
            // The others change host memory, locks or reserved addresses: nothing a replay sees.
            _ => {}
        }
        Ok(())
    }

    /// Megabytes that must exceed (up to 2.9) or reach (since 2.10) the large segment size.
    fn splittable(&self, key: &str, value: &str) -> Result<u64, Error> {
        let bytes = megabytes(key, value)?;
        let least = self.large_segment_size;
        let (fits, word) = if self.version < (2, 10) {
            (least < bytes, "above")
        } else {
            (least <= bytes, "at least")
        };
        if fits {
            Ok(bytes)
        } else {
            Err(Error(format!("`{key}:{value}` is not {word} {}", least / MIB)))
        }
    }
}

/// `key:value` pairs; a value may be a list in brackets.
pub(crate) fn pairs(conf: &str) -> Result<Vec<(String, String)>, Error> {
    let text: String = conf.chars().filter(|letter| !letter.is_whitespace()).collect();
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let Some((key, after)) = rest.split_once(':') else {
            return Err(Error(format!("`{rest}` has no value: settings are written `key:value`")));
        };
        let end = if after.starts_with('[') {
            after.find(']').ok_or(Error(format!("the list of `{key}` has no end")))? + 1
        } else {
            after.find(',').unwrap_or(after.len())
        };
        let (value, after) = after.split_at(end);
        if !after.is_empty() && !after.starts_with(',') {
            return Err(Error(format!("`{after}` after the value of `{key}`")));
        }
        found.push((key.to_owned(), value.to_owned()));
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    Ok(found)
}

/// `parseRoundUpPower2Divisions`: a number for all sizes, or a list by megabytes.
fn divisions(version: Version, value: &str) -> Result<[u64; 16], Error> {
    let key = "roundup_power2_divisions";
    let number = |text: &str, zero: bool| {
        let parsed = text.parse::<u64>().ok();
        parsed
            .filter(|parts| parts.is_power_of_two() || (zero && *parts == 0))
            .ok_or(Error(format!("`{key}`: `{text}` is not a power of two")))
    };
    let Some(list) = value.strip_prefix('[').and_then(|list| list.strip_suffix(']')) else {
        return Ok([number(value, false)?; 16]);
    };
    if version < (2, 0) {
        return Err(Error(format!("torch 1.13 takes no list for `{key}`")));
    }
    let mut table = [0; 16];
    let mut last = 0;
    for (position, entry) in list.split(',').enumerate() {
        let (start, parts) = entry
            .split_once(':')
            .ok_or(Error(format!("`{key}`: `{entry}` is not `megabytes:parts`")))?;
        let parts = number(parts, (2, 4) <= version)?;
        if start == ">" {
            // Up to 2.9 the last interval named before is overwritten as well.
            let from = if version < (2, 10) { last } else { last + 1 };
            table.iter_mut().skip(from).for_each(|entry| *entry = parts);
            continue;
        }
        let index = (number(start, false)?.ilog2() as usize).min(15);
        if position == 0 {
            table[..index].fill(parts);
        }
        table[index] = parts;
        last = index;
    }
    Ok(table)
}

/// Bytes; an exabyte stands for everything above, as no request is greater.
fn megabytes(key: &str, value: &str) -> Result<u64, Error> {
    let parsed = value.parse::<u64>().ok().map(|number| number.saturating_mul(MIB).min(1 << 60));
    parsed.ok_or(Error(format!("`{key}:{value}` is not a number of megabytes")))
}

fn truth(key: &str, value: &str) -> Result<bool, Error> {
    match value {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err(Error(format!("`{key}:{value}` is neither `True` nor `False`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(version: &str, conf: &str) -> Result<Settings, String> {
        let settings = Settings::for_torch(version).unwrap();
        settings.with_conf(conf).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_are_set() {
        let conf =
            "max_split_size_mb:128, expandable_segments:True,garbage_collection_threshold:0.8";
        let settings = parsed("2.6", conf).unwrap();
        assert_eq!(settings.max_split_size, 128 * MIB);
        assert!(settings.expandable_segments);
        assert_eq!(settings.garbage_collection_threshold, 0.8);
        let again = settings.with_conf("").unwrap();
        assert_eq!((again.max_split_size, again.expandable_segments), (UNLIMITED, true));
        assert_eq!(
            parsed("2.15", "large_segment_size_mb:64").unwrap().max_non_split_rounding,
            64 * MIB
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |version, conf| parsed(version, conf).unwrap_err();
        assert_eq!(error("2.15", "speed:1"), "`speed` is not a setting of PyTorch's allocator");
        assert_eq!(
            error("2.10", "large_segment_size_mb:64"),
            "torch 2.10 has no setting `large_segment_size_mb`"
        );
        assert_eq!(error("2.9", "max_split_size_mb:20"), "`max_split_size_mb:20` is not above 20");
        assert!(parsed("2.10", "max_split_size_mb:20").is_ok());
        assert_eq!(
            error("2.15", "max_split_size_mb:19"),
            "`max_split_size_mb:19` is not at least 20"
        );
        assert_eq!(
            error("2.6", "expandable_segments:true"),
            "`expandable_segments:true` is neither `True` nor `False`"
        );
        assert_eq!(
            error("2.6", "garbage_collection_threshold:1"),
            "`garbage_collection_threshold:1` is not between 0 and 1"
        );
        assert_eq!(
            error("2.6", "backend:cudaMallocAsync"),
            "`backend:cudaMallocAsync` does not cache: it cannot be replayed"
        );
        assert_eq!(
            error("2.6", "roundup_power2_divisions:3"),
            "`roundup_power2_divisions`: `3` is not a power of two"
        );
        assert_eq!(
            error("2.6", "expandable_segments"),
            "`expandable_segments` has no value: settings are written `key:value`"
        );
    }

    #[test]
    fn the_round_up_list_fills_as_the_version_does() {
        let table = |version, conf: &str| {
            let conf = format!("roundup_power2_divisions:{conf}");
            parsed(version, &conf).unwrap().roundup_power2_divisions
        };
        assert_eq!(table("2.6", "4"), [4; 16]);
        let new = table("2.10", "[256:1,512:2,1024:4,>:8]");
        assert_eq!(new, [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8]);
        let old = table("2.9", "[256:1,512:2,1024:4,>:8]");
        assert_eq!(old, [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 8, 8, 8, 8, 8, 8]);
        assert_eq!(table("2.15", "[4:2,64:8]"), [2, 2, 2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
