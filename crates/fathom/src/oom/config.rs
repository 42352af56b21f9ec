//! Dimensions from a configuration: every whole number of a YAML file, with its key.
//!
//! Not a reader of YAML: `key: 4` and `key: [64, 128]` are found wherever they stand, and everything else
//! is passed over.

use oom::Dim;

/// Larger numbers are seeds and counts of steps, not dimensions.
const LARGEST: u64 = 1 << 24;

/// Keys that are numbers of something else, by a part of their name.
const NOT_DIMENSIONS: [&str; 12] = [
    "seed", "epoch", "step", "port", "worker", "interval", "every", "version", "gpu", "rank",
    "warmup", "log",
];

/// The dimensions, in the order of the file; what is there twice is there once.
pub(super) fn dims(text: &str) -> Vec<Dim> {
    let mut dims: Vec<Dim> = Vec::new();
    let mut list_key = String::new();
    for line in text.lines().take(100_000) {
        let line = line.split(" #").next().unwrap_or_default().trim();
        let (key, value) = match line.split_once(':') {
            Some((key, value)) => {
                list_key = key.trim_start_matches("- ").trim().to_owned();
                (list_key.clone(), value.trim())
            }
            // An item of a list below its key.
            None => match line.strip_prefix("- ") {
                Some(item) => (list_key.clone(), item.trim()),
                None => continue,
            },
        };
        let name = key.trim_matches(['"', '\'']).to_owned();
        let lower = name.to_ascii_lowercase();
        if name.is_empty() || NOT_DIMENSIONS.iter().any(|word| lower.contains(word)) {
            continue;
        }
        let items = value.trim_start_matches(['[', '(']).trim_end_matches([']', ')']).split(',');
        for value in items.filter_map(|item| item.trim().replace('_', "").parse::<u64>().ok()) {
            let dim = Dim { name: name.clone(), value };
            if (2..=LARGEST).contains(&value) && !dims.contains(&dim) {
                dims.push(dim);
            }
        }
    }
    dims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_dimensions() {
        let text = "model:\n  channels: [64, 128, 64]\n  batch_size: 4  # per GPU\n  lr: 1e-4\n  seed: 42\n\
                    heights:\n  - 1024\n  - 512\n  name: net\n  \"kernel\": 7\n  steps: 300\n";
        let found: Vec<String> =
            dims(text).iter().map(|dim| format!("{}={}", dim.name, dim.value)).collect();
        assert_eq!(
            found,
            [
                "channels=64",
                "channels=128",
                "batch_size=4",
                "heights=1024",
                "heights=512",
                "kernel=7"
            ]
        );
    }

    #[test]
    fn anything_else_is_passed_over() {
        assert_eq!(dims("{]: : - [\n---\n: 5\nkey: 99999999999999999999\nx: 1\n"), []);
    }
}
