//! The valid and invalid messages of `packets/`, for tests that take many.

use std::path::{Path, PathBuf};

/// Returns every message with its path in the corpus, sorted by name.
pub(crate) fn messages() -> Vec<(String, Vec<u8>)> {
    let mut paths = Vec::new();
    for folder in ["packets/valid", "packets/valid/inbox", "packets/invalid"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(folder);
        let entries = std::fs::read_dir(folder).expect("the corpus");
        let is_message = |path: &PathBuf| {
            path.is_file() && path.extension().is_some_and(|end| end != "expected")
        };
        paths.extend(
            entries
                .map(|entry| entry.expect("an entry").path())
                .filter(is_message),
        );
    }
    paths.sort();
    assert!(
        paths.len() > 80,
        "the search for messages found only {}",
        paths.len()
    );
    paths
        .into_iter()
        .map(|path| {
            (
                path.display().to_string(),
                std::fs::read(&path).expect("a message can be read"),
            )
        })
        .collect()
}
