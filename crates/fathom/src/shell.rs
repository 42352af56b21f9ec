//! Commands as a reader can type them again.

/// Words of a command as one line for a shell.
pub(crate) fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        assert_eq!(line(["python", "train.py", "--lr=1e-3"]), "python train.py --lr=1e-3");
        assert_eq!(line(["bash", "-c", "a b", "", "it's"]), r"bash -c 'a b' '' 'it'\''s'");
    }
}
