//! `CUDA_VISIBLE_DEVICES` of the shell. It speaks of this machine's cards; the script gets what it would
//! see of them, unless a flag says how many cards there are.

use contract::environment as name;
use contract::status::MAX_DEVICES;

use crate::settings::Settings;

pub(crate) const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

/// What Slurm writes for a job without a GPU: nobody's wish, and where this command is of most use.
const OF_SLURM: &str = "NoDevFiles";

/// What the script is given; `None`: it sees all cards of the phantom.
pub(crate) fn for_script(settings: &Settings) -> Option<String> {
    let is_told = settings.cards.is_some() || settings.place.is_some();
    if is_told || std::env::var_os(name::DEVICES).is_some() {
        return None;
    }
    std::env::var_os(VARIABLE).and_then(|text| translate(&text.to_string_lossy()))
}

/// Names of this machine's cards stand for as many of the phantom's; numbers stay as they are.
fn translate(text: &str) -> Option<String> {
    let trimmed = text.trim();
    if trimmed.eq_ignore_ascii_case(OF_SLURM) {
        return None;
    }
    let is_name = ["GPU-", "MIG-"].iter().any(|start| trimmed.starts_with(start));
    if !is_name {
        return Some(text.to_owned());
    }
    let count = trimmed.split(',').filter(|entry| !entry.trim().is_empty()).count();
    let numbers: Vec<String> = (0..count.min(MAX_DEVICES)).map(|card| card.to_string()).collect();
    Some(numbers.join(","))
}

/// Why the script saw no card, if the variable hides them all.
pub(crate) fn note(settings: &Settings) -> Option<String> {
    let text = for_script(settings)?;
    let shows_one = text.trim_start().starts_with(|c: char| c.is_ascii_digit());
    (!shows_one).then(|| {
        format!(
            "`{VARIABLE}={}` in your shell hides every GPU from the script; `--gpus 1` shows it one",
            text.trim()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_become_numbers() {
        let given = |text: &str| translate(text);
        assert_eq!(given("3,1").as_deref(), Some("3,1"));
        assert_eq!((given("").as_deref(), given("-1").as_deref()), (Some(""), Some("-1")));
        assert_eq!(given("GPU-8932f937-d72c,GPU-0fa1, ").as_deref(), Some("0,1"));
        assert_eq!(given("MIG-3eb87630-93d5").as_deref(), Some("0"));
        assert_eq!(given("NoDevFiles"), None);
    }
}
