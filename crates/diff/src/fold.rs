//! Modules that differ in their numbers only, put together: twelve layers are one row.

use std::collections::HashMap;

use anatomy::alike::Pattern;

use crate::difference::{Change, ModuleRow};

/// Modules of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// `encoder.layers.{0-11}.attn`; empty for what belongs to no module.
    pub path: String,
    pub class: String,
    /// How many modules were put together.
    pub times: usize,
    /// Bytes that are their own.
    pub own: Change,
}

/// Folds rows; the greatest change comes first.
pub fn fold(rows: &[ModuleRow]) -> Vec<Folded> {
    let mut folded: Vec<(Folded, Pattern)> = Vec::new();
    let mut places: HashMap<(String, &str), usize> = HashMap::new();
    for row in rows {
        let place = *places.entry((without_numbers(&row.path), &row.class)).or_insert_with(|| {
            let first =
                Folded { path: row.path.clone(), class: row.class.clone(), ..Folded::default() };
            folded.push((first, Pattern::default()));
            folded.len() - 1
        });
        let (first, paths) = &mut folded[place];
        first.times += 1;
        first.own.add(row.own);
        paths.add(&row.path);
    }
    let named = folded.into_iter().map(|(first, paths)| {
        let path = paths.name(&first.path);
        Folded { path, ..first }
    });
    let mut folded: Vec<Folded> = named.collect();
    folded.sort_by_key(|row| row.own.rank());
    folded
}

/// `layers.#.attn` for `layers.11.attn`.
pub(crate) fn without_numbers(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    let mut was_digit = false;
    for letter in path.chars() {
        let is_digit = letter.is_ascii_digit();
        match (is_digit, was_digit) {
            (true, true) => {}
            (true, false) => text.push('#'),
            (false, _) => text.push(letter),
        }
        was_digit = is_digit;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_become_one_row() {
        let row = |path: &str, a: u64, b: u64| ModuleRow {
            path: path.to_owned(),
            own: Change { a, b },
            ..ModuleRow::default()
        };
        let rows = fold(&[row("head", 1, 2), row("layers.0.fc", 3, 5), row("layers.11.fc", 3, 5)]);
        let short: Vec<(&str, usize, i64)> =
            rows.iter().map(|row| (row.path.as_str(), row.times, row.own.delta())).collect();
        assert_eq!(short, [("layers.{0-11}.fc", 2, 4), ("head", 1, 1)]);
    }

    #[test]
    fn numbers_of_modules_do_not_count() {
        assert_eq!(without_numbers("layers.11.attn2.0"), "layers.#.attn#.#");
    }
}
