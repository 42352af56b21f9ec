//! Tensors of one kind under one name: `layers.{0-11}.fc.weight` for twelve of them.

use crate::anatomy::{Alike, Tensor};

/// Names that differ in their numbers only; of others the first is kept.
#[derive(Clone, Debug, Default)]
pub struct Pattern {
    /// Texts between numbers, one more than there are numbers.
    texts: Vec<String>,
    /// The least and the greatest number at each place.
    numbers: Vec<(u64, u64)>,
    /// Some name was of another form.
    is_mixed: bool,
}

impl Pattern {
    /// Takes one more name.
    pub fn add(&mut self, name: &str) {
        let (texts, numbers) = split(name);
        if self.texts.is_empty() {
            self.texts = texts;
            self.numbers = numbers.into_iter().map(|number| (number, number)).collect();
        } else if self.texts == texts {
            for ((least, greatest), number) in self.numbers.iter_mut().zip(numbers) {
                *least = number.min(*least);
                *greatest = number.max(*greatest);
            }
        } else {
            self.is_mixed = true;
        }
    }

    /// The name of them all.
    pub fn name(&self, first: &str) -> String {
        if self.is_mixed && !first.is_empty() {
            return format!("{first} …");
        }
        let mut name = String::new();
        for (index, text) in self.texts.iter().enumerate() {
            name += text;
            name += &match self.numbers.get(index) {
                Some((least, greatest)) if least == greatest => least.to_string(),
                Some((least, greatest)) => format!("{{{least}-{greatest}}}"),
                None => String::new(),
            };
        }
        name
    }
}

/// A kind of tensors: the first of them, with the names and modules of all.
pub(crate) fn kind(first: Tensor, count: u64, names: &Pattern, modules: &Pattern) -> Alike {
    let mut first = Tensor { name: names.name(&first.name), ..first };
    first.origin.module = modules.name(&first.origin.module);
    Alike { count, first }
}

/// `a.`, `.b` and 12 for `a.12.b`. Numbers that belong to a word, as in `conv2d`, or that are too
/// large, are text.
fn split(name: &str) -> (Vec<String>, Vec<u64>) {
    let (mut texts, mut numbers) = (vec![String::new()], Vec::new());
    for part in name.split_inclusive(['.', ' ']) {
        let digits = part.trim_end_matches(['.', ' ']);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse().ok().filter(|_| is_number) {
            Some(number) => {
                numbers.push(number);
                texts.push(part[digits.len()..].to_owned());
            }
            None => texts.iter_mut().last().into_iter().for_each(|text| text.push_str(part)),
        }
    }
    (texts, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(names: &[&str]) -> String {
        let mut pattern = Pattern::default();
        names.iter().for_each(|name| pattern.add(name));
        pattern.name(names[0])
    }

    #[test]
    fn numbers_become_ranges() {
        assert_eq!(name(&["h.0.fc.weight", "h.11.fc.weight"]), "h.{0-11}.fc.weight");
        assert_eq!(name(&["a.1.b.2", "a.1.b.3"]), "a.1.b.{2-3}");
        assert_eq!(name(&["exp_avg of 0.bias", "exp_avg of 3.bias"]), "exp_avg of {0-3}.bias");
        assert_eq!(name(&["conv2d.weight"]), "conv2d.weight");
        assert_eq!(name(&["", ""]), "");
    }

    #[test]
    fn other_names_are_not_hidden() {
        assert_eq!(
            name(&["exp_avg of fc.weight", "exp_avg_sq of fc.weight"]),
            "exp_avg of fc.weight …"
        );
    }
}
