//! The reference of families is what the table says.

use std::fs;
use std::path::Path;

#[test]
fn the_page_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/messages.md");
    let page = oom::page::messages();
    if std::env::var("UPDATE_GOLDEN").is_ok_and(|value| value == "1") {
        fs::write(&path, &page).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "intended? then run with UPDATE_GOLDEN=1");
}
