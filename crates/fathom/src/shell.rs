//! Commands as a reader can type them again.

/// Words of a command as one line for a shell.
pub(crate) fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// A line as a shell would take it apart, without what it would replace: blanks part words, quotes keep them together.
pub(crate) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            (end, Some(open)) if end == open => quote = None,
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(letters.next()),
            (letter, Some(_)) => word.get_or_insert_default().push(letter),
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, None) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
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
    fn what_was_made_a_line_is_taken_apart_again() {
        let all = ["bash", "-c", "a b", "", "it's", "x=\"1\""];
        assert_eq!(words(&line(all)), all);
        assert_eq!(words("a  'b c' \"d 'e'\" f\\ g"), ["a", "b c", "d 'e'", "f g"]);
        assert!(words("  ").is_empty());
    }

    #[test]
    fn words_stay_words() {
        assert_eq!(line(["python", "train.py", "--lr=1e-3"]), "python train.py --lr=1e-3");
        assert_eq!(line(["bash", "-c", "a b", "", "it's"]), r"bash -c 'a b' '' 'it'\''s'");
    }
}
