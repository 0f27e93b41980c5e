//! The changes that a service would make in a file, for a person to look at first.

use similar::TextDiff;

/// Gives the unified diff between two texts of one file, or nothing where they are the same.
pub(crate) fn unified(name: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let diff = TextDiff::from_lines(before, after);
    // As git has it: a path from the root on is one from the top of the tree.
    let name = name.trim_start_matches('/');
    diff.unified_diff()
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string()
}
