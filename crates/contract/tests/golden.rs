//! What is generated from the contract is fresh.

use std::fs;
use std::path::Path;

fn check(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "`{}` is stale: UPDATE_GOLDEN=1 cargo test -p contract", path.display());
}

#[test]
fn generated_files_are_fresh() {
    check("docs/reference/environment.md", &contract::environment::markdown());
    check("docs/reference/files.md", &contract::generated::markdown());
    check("python/fathom/contract.py", &contract::generated::python());
}
