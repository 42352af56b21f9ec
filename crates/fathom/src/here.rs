//! Files as people name them: from the folder that the command was given in.

/// That folder, with a slash at its end; empty if it is gone.
pub(crate) fn folder() -> String {
    std::env::current_dir().map_or(String::new(), |at| format!("{}/", at.display()))
}

/// A file as it is named from there.
pub(crate) fn from_here(file: String) -> String {
    let folder = folder();
    match file.strip_prefix(&folder).filter(|_| !folder.is_empty()) {
        Some(rest) => rest.to_owned(),
        None => file,
    }
}
