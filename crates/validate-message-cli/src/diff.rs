//! The changes that a service would make in a file, shown to a person first.

use std::time::Duration;

use similar::TextDiff;

/// The longest search for the smallest difference. What is left then is shown as removed and added: where all lines of a
/// large file change, the search takes minutes and finds nothing better.
const SEARCH_MAX: Duration = Duration::from_millis(20);

/// Returns the unified diff between two texts of one file; empty if they are equal.
pub(crate) fn unified(name: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let diff = TextDiff::configure()
        .timeout(SEARCH_MAX)
        .diff_lines(before, after);
    // As in git: an absolute path is shown as a path from the top of the tree.
    let name = name.trim_start_matches('/');
    diff.unified_diff()
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string()
}
