//! The line about violations that are left out, as most formats print it.

use crate::check::verdict::Verdict;

/// Returns the line that says that some violations of a file are left out.
pub(super) fn cut(verdict: &Verdict) -> String {
    if verdict.is_cut() {
        format!(
            "{}: there are more violations, these are the first\n",
            verdict.file
        )
    } else {
        String::new()
    }
}
