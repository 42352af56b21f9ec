//! The reference page is what the code says: UPDATE_GOLDEN=1 writes it.

use std::path::Path;

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/findings.md");
    let page = diagnose::page::page();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, page, "UPDATE_GOLDEN=1 cargo test -p diagnose writes it anew");
}
