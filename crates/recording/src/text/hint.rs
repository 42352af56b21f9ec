//! What a word could have been.

/// ` (did you mean `stream`?)` if one of the known words is near, else the list of them.
pub(super) fn hint(word: &str, known: &[&str]) -> String {
    let nearest = known.iter().min_by_key(|candidate| distance(word, candidate));
    match nearest {
        None => String::new(),
        Some(near) if is_near(word, near) => format!(" (did you mean `{near}`?)"),
        Some(_) => {
            let known: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
            format!(" (it can have {})", known.join(", "))
        }
    }
}

/// One typing error in three letters, or one word with more at its end.
fn is_near(word: &str, known: &str) -> bool {
    let letters = word.len().min(known.len());
    let has_more = word.starts_with(known) || known.starts_with(word);
    distance(word, known) <= letters / 3 || (3 <= letters && has_more)
}

/// How many letters must be put in, taken out or changed (Levenshtein), row by row.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut left = index + 1;
        let mut corner = index;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, candidate) in row.iter_mut().skip(1).zip(other.chars()) {
            left = (corner + usize::from(letter != candidate)).min(left + 1).min(*cell + 1);
            corner = std::mem::replace(cell, left);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_proposed_else_all_are_listed() {
        let known = ["stream", "owner", "pool"];
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(hint("strem", &known), " (did you mean `stream`?)");
        assert_eq!(hint("streams", &known), " (did you mean `stream`?)");
        assert_eq!(hint("colour", &known), " (it can have `stream`, `owner`, `pool`)");
        assert_eq!(hint("7", &[]), "");
    }
}
