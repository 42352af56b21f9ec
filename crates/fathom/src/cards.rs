//! Which cards are meant where several can be: `--gpu`, `--memory` and `--used` of `sweep` and `report`.

use anyhow::Result;
use gpus::Card;

use crate::cli::{CardArguments, CardsArguments};
use crate::error::Hinted;

impl CardsArguments {
    /// All of them in the order in which they were said, and how their sizes were understood.
    pub(crate) fn meant(&self) -> Result<(Vec<Card>, Vec<String>)> {
        let (mut cards, mut notes) = (Vec::new(), Vec::new());
        for said in self.each()? {
            if let Some(meant) = said.meant()? {
                cards.push(meant.card);
                notes.extend(meant.notes);
            }
        }
        Ok((cards, notes))
    }

    fn each(&self) -> Result<Vec<CardArguments>> {
        let one = |gpu: Option<&String>, memory: Option<&String>| {
            let text = |text: &String| text.trim().to_owned();
            let (gpu, memory) = (gpu.map(text), memory.map(text));
            CardArguments { gpu, memory, used: self.used.clone() }
        };
        Ok(match (self.gpu.as_slice(), self.memory.as_slice()) {
            ([], []) if self.used.is_some() => vec![one(None, None)],
            (names, []) => names.iter().map(|name| one(Some(name), None)).collect(),
            ([], sizes) => sizes.iter().map(|size| one(None, Some(size))).collect(),
            ([name], sizes) => sizes.iter().map(|size| one(Some(name), Some(size))).collect(),
            (names, [size]) => names.iter().map(|name| one(Some(name), Some(size))).collect(),
            _ => {
                return Err(Hinted::error(
                    "several GPUs and several memories",
                    "name one GPU with its memories, or one memory with its GPUs",
                ));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_side_may_have_several() {
        let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let meant = |gpu: &[&str], memory: &[&str]| {
            let (gpu, memory) = (texts(gpu), texts(memory));
            let (cards, _) = CardsArguments { gpu, memory, used: None }.meant()?;
            Ok(cards.into_iter().map(|card| card.memory_bytes >> 30).collect::<Vec<_>>())
        };
        let of_some = |result: Result<Vec<u64>>| result.unwrap();
        assert_eq!(of_some(meant(&[], &[])), [0; 0]);
        assert_eq!(of_some(meant(&["rtx3090"], &["8GiB", " 16GiB"])), [8, 16]);
        assert_eq!(of_some(meant(&["rtx3090", "t4"], &["8GiB"])), [8, 8]);
        assert_eq!(of_some(meant(&[], &["8GiB", "16GiB"])), [8, 16]);
        assert_eq!(of_some(meant(&["rtx3090", "a100-80g"], &[])), [23, 79]);
        let alone = CardsArguments { used: Some("2GiB".to_owned()), ..CardsArguments::default() };
        assert_eq!(alone.meant().unwrap_err().to_string(), "`--used` without a card");
        let error = meant(&["rtx3090", "t4"], &["8GiB", "16GiB"]).unwrap_err();
        assert_eq!(error.to_string(), "several GPUs and several memories");
    }
}
