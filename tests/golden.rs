//! Texts that must stay as they are, in `tests/golden/`. `UPDATE=1` rewrites them; the diff of the commit then shows
//! the change.

use std::path::Path;

/// Compares a text with the stored one of this name.
pub fn check(name: &str, text: &str) {
    check_file(&crate::repository().join("tests/golden").join(name), text);
}

/// Compares a text with a whole file of the repository.
pub fn check_file(path: &Path, text: &str) {
    if std::env::var_os("UPDATE").is_some() {
        crate::write(path, text);
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == text,
        "{} differs; UPDATE=1 rewrites it\n--- kept\n{kept}\n--- now\n{text}",
        path.display()
    );
}
