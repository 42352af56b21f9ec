//! What the recorder saw of a script beside its memory: kinds of facts, each with its values.
//!
//! | kind | a value |
//! | --- | --- |
//! | `frozen` | path of a module whose parameters all require no gradient, and had none when an optimizer stepped |
//! | `untrained` | path of a module whose parameters may have gradients, and that no optimizer has |
//! | `unused` | name of a parameter that may have a gradient and has none |
//! | `copy_called` | what names of a copy of the model begin with (`Net#2.`), if it is called while the model is trained |
//! | `checkpointing` | path of a module with a switch for checkpointing that is on |
//! | `recomputed` | path of a module that ran again inside a backward pass |
//! | `sdpa` | `module=… q=1024 k=1024 heads=6 groups=6 dim=64 dtype=float32 mask=no dropout=0.0 grad=yes` |
//! | `weights_wanted` | path of a `MultiheadAttention` that was asked for its attention weights |
//! | `outer` | `module=… operator=sub shape=2x64x64x3`: a result that is larger than both of its sides |
//! | `unfolded` | `module=… columns=1568 times=49.0`: how often windows write each number out |
//! | `one_hot` | `module=… shape=8x1024x5000` of one-hot vectors |
//! | `copied` | `module=… elements=8388608`: something that no function made was copied |
//! | `upsampled` | path of the module of a convolution whose input an interpolation enlarged |
//! | `evaluated_with_grad` | path of a model that was called in evaluation mode while gradients were on |
//! | `retained` | file and line of a backward pass that keeps its graph |
//! | `differentiated` | file and line of a backward pass that makes a graph of its own |
//! | `optimizer` | `AdamW foreach=yes fused=no` |
//! | `kv_cache` | `kind=DynamicCache tokens=-2`: who keeps it, and which dimension counts tokens |
//! | `size` | `num_group=64`: a whole number that a module has as an attribute |
//! | `autocast` | the dtype |
//! | `cudnn_benchmark` | `on` |
//! | `channels_last` | `on`, if weights of convolutions lie so |
//! | `expandable_segments` | `on`, if the script's environment says so |

use std::collections::BTreeMap;

/// Values by kind. Unknown kinds are kept: a newer recorder may know more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    of_kind: BTreeMap<String, Vec<String>>,
}

impl Facts {
    /// The values of a kind, in the order in which they were seen.
    pub fn of(&self, kind: &str) -> &[String] {
        self.of_kind.get(kind).map_or(&[], Vec::as_slice)
    }

    /// Is this one of them?
    pub fn has(&self, kind: &str, value: &str) -> bool {
        self.of(kind).iter().any(|other| other == value)
    }

    /// Adds a value.
    pub fn add(&mut self, kind: &str, value: &str) {
        self.of_kind.entry(kind.to_owned()).or_default().push(value.to_owned());
    }

    /// Takes a text out of every value, such as the folder that all files are in.
    pub fn cut(&mut self, text: &str) {
        let values = self.of_kind.values_mut().flatten().filter(|value| value.contains(text));
        values.for_each(|value| *value = value.replace(text, ""));
    }

    /// Kinds and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let rows = self.of_kind.iter();
        rows.flat_map(|(kind, values)| values.iter().map(|value| (kind.as_str(), value.as_str())))
    }

    /// As they are written to a file.
    pub(crate) fn map(&self) -> &BTreeMap<String, Vec<String>> {
        &self.of_kind
    }

    /// What a file says later replaces what it said before, kind by kind.
    pub(crate) fn merge(&mut self, newer: BTreeMap<String, Vec<String>>) {
        self.of_kind.extend(newer);
    }
}

/// The word after `key=` in a value such as `q=1024 dtype=float32`.
pub fn word<'a>(value: &'a str, key: &str) -> Option<&'a str> {
    value.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_facts_replace_older_ones_of_their_kind() {
        let mut facts = Facts::default();
        facts.add("frozen", "a");
        facts.add("optimizer", "SGD");
        facts.merge(BTreeMap::from([("frozen".to_owned(), vec!["b".to_owned()])]));
        assert!(facts.has("frozen", "b") && !facts.has("frozen", "a"));
        assert_eq!(facts.iter().collect::<Vec<_>>(), [("frozen", "b"), ("optimizer", "SGD")]);
        assert!(facts.of("nothing").is_empty());
    }

    #[test]
    fn a_folder_is_cut_out_of_values() {
        let mut facts = Facts::default();
        facts.add("retained", "/home/me/train.py:3");
        facts.cut("/home/me/");
        assert_eq!(facts.of("retained"), ["train.py:3"]);
    }

    #[test]
    fn words_of_a_value_are_found_by_their_key() {
        let value = "module=a.b q=12 qk=13 mask=no";
        assert_eq!(word(value, "q"), Some("12"));
        assert_eq!(word(value, "module"), Some("a.b"));
        assert_eq!(word(value, "k"), None);
    }
}
