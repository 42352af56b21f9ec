//! The difference as Markdown, for the description of a pull request or a comment below it.

use anatomy::bytes;
use diff::{Change, Difference, Status};

use super::sentences;
use crate::markup::{code, plain};

/// Rows of each table: a comment is read, not searched.
const ROWS: usize = 10;

/// The whole: the answer and the totals in sight, what holds it behind a click.
pub fn markdown(difference: &Difference) -> String {
    let mut text = format!("**{}**\n\n", plain(&sentences::answer(difference)));
    for (letter, side) in [("A", &difference.a), ("B", &difference.b)] {
        text += &format!("- {letter}: {}\n", code(&sentences::given(side)));
    }
    let totals = sentences::totals(difference);
    let totals: Vec<(String, Change)> =
        totals.into_iter().map(|(name, change)| (name.to_owned(), change)).collect();
    text += &table("peak", &totals);
    let named = |name: String, change: Change| (name, change);
    let categories = difference.categories.iter();
    text += &changed(
        "held at the peak",
        categories.map(|row| named(sentences::category(&row.name), row.bytes)),
    );
    let findings = difference.findings.iter();
    text += &changed("causes", findings.map(|row| named(plain(&row.title), row.bytes)));
    let folded = diff::fold(&difference.modules);
    let modules = folded.iter().map(|row| named(code(&sentences::module(row)), row.own));
    let lines = difference.lines.iter().map(|row| {
        let source = if row.source.is_empty() { String::new() } else { code(&row.source) };
        named(format!("{} {source}", code(&sentences::line(row))).trim_end().to_owned(), row.bytes)
    });
    let tensors = sentences::tensors(difference).iter();
    let tensors = tensors.map(|row| {
        let [what, who] = sentences::tensor(row);
        let who = format!("{who}{}", sentences::at(&row.place));
        named(code(&format!("{what} {}", who.trim_start())), row.bytes)
    });
    text += &folded_away("lines", &changed("line", lines));
    text += &folded_away("modules", &changed("module", modules));
    text += &folded_away("tensors", &changed("tensors", tensors));
    for note in difference.renamed.iter().chain(&difference.notes) {
        text += &format!("\n> {}\n", plain(note));
    }
    text
}

/// The rows that changed, the greatest change first.
fn changed(title: &str, rows: impl Iterator<Item = (String, Change)>) -> String {
    let mut rows: Vec<(String, Change)> =
        rows.filter(|(_, change)| change.status() != Status::Same).collect();
    rows.sort_by_key(|(_, change)| std::cmp::Reverse(change.delta().unsigned_abs()));
    let rest = rows.split_off(ROWS.min(rows.len()));
    if !rest.is_empty() {
        let sum = rest.iter().fold(Change::default(), |all, (_, change)| Change {
            a: all.a + change.a,
            b: all.b + change.b,
        });
        rows.push((format!("{} more", rest.len()), sum));
    }
    table(title, &rows)
}

fn table(title: &str, rows: &[(String, Change)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text =
        format!("\n| {title} | A | B | change | |\n| --- | ---: | ---: | ---: | ---: |\n");
    for (name, change) in rows {
        let size = |bytes: u64| if bytes == 0 { "–".to_owned() } else { bytes::text(bytes) };
        text += &format!(
            "| {name} | {} | {} | {} | {} |\n",
            size(change.a),
            size(change.b),
            sentences::delta(*change),
            sentences::percent(*change)
        );
    }
    text
}

fn folded_away(title: &str, table: &str) -> String {
    if table.is_empty() {
        return String::new();
    }
    format!("\n<details><summary>{title}</summary>\n{table}\n</details>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_the_table_are_summed_up() {
        let rows = (0..12).map(|number| (number.to_string(), Change { a: 0, b: 100 - number }));
        let text = changed("rows", rows);
        assert!(text.ends_with("| 2 more | – | 179 B | +179 B |  |\n"), "{text}");
        assert_eq!(changed("rows", std::iter::empty()), "");
    }
}
