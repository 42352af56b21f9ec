//! Texts about memory: messages and tables.

use oom::{Account, Cause};
use report::oom::{Entry, Next, Texts};

use crate::Hinted;

/// What was said beside a text, as far as the commands that go on from it need it.
#[derive(Clone, Debug, Default)]
pub struct Said {
    pub command: Vec<String>,
    pub gpu: Option<String>,
    pub smi: Option<String>,
    pub reserved: Option<String>,
}

/// Messages first, those with numbers before others, in the order in which they came; then tables. Each text
/// comes with its name.
pub fn entries(texts: &[(String, String)]) -> Vec<Entry> {
    let entry = |file: &String, account: Account| {
        let balance = oom::weigh(&account);
        let advice = oom::advise(&account, &balance);
        Entry { file: file.clone(), account, balance, advice }
    };
    let read = |(file, text): &(String, String)| -> Vec<Entry> {
        oom::read(text).into_iter().map(|account| entry(file, account)).collect()
    };
    let mut entries: Vec<Entry> = texts.iter().flat_map(read).collect();
    entries.sort_by_key(|entry| {
        let account = &entry.account;
        let is_warning = entry.balance.cause == Cause::Warning;
        (!account.kind.is_refusal(), is_warning, !account.has_numbers(), !account.sure)
    });
    entries
}

/// Commands that go on from an answer.
pub fn next(answer: &Texts, texts: &[(String, String)], said: &Said) -> Vec<Next> {
    crate::next::next(answer, texts, said)
}

/// There is nothing in these texts.
pub fn nothing(texts: &[(String, String)]) -> anyhow::Error {
    let names: Vec<String> = texts.iter().map(|(name, _)| format!("`{name}`")).collect();
    match names.is_empty() {
        true => Hinted::error(
            "there is nothing to explain",
            "name a file, or give figures: `fathom explain --smi 22616MiB --reserved 21.5GiB`",
        ),
        false => Hinted::error(
            format!(
                "no out-of-memory message and no memory table was found in {}",
                names.join(", ")
            ),
            "give the text of the error itself, a recording (`fathom run --out DIR`) or a memory snapshot",
        ),
    }
}

#[cfg(test)]
mod tests {
    use oom::Kind;

    use super::*;

    #[test]
    fn the_message_comes_before_the_table() {
        let texts = [
            (
                "smi.txt".to_owned(),
                "memory.used [MiB], memory.total [MiB]\n1 MiB, 2 MiB\n".to_owned(),
            ),
            ("train.log".to_owned(), "CUDA out of memory. Tried to allocate 2.00 GiB".to_owned()),
        ];
        let entries = entries(&texts);
        let first = entries.first().map(|entry| (entry.file.as_str(), entry.account.kind));
        assert_eq!(first, Some(("train.log", Kind::Cuda)));
    }
}
