//! The levers and what is written about them.

use fit::lever::{FREE, IF_ASKED, PLAIN, PROBED};

const PAGE: &str = include_str!("../../../docs/reference/fit.md");

#[test]
fn the_page_has_each_lever_with_its_label() {
    for (lever, label) in PLAIN {
        let row =
            PAGE.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{lever}`")));
        let row = row.unwrap_or_else(|| panic!("docs/reference/fit.md has no row of {lever}"));
        assert!(row.contains(label.name()), "{row}");
    }
}

#[test]
fn levers_of_the_stages_are_known() {
    let known: Vec<&str> = PLAIN.iter().map(|row| row.0).chain(["accumulate"]).collect();
    for lever in FREE.iter().chain(&IF_ASKED).chain(&PROBED) {
        assert!(known.contains(lever), "{lever}");
    }
}
