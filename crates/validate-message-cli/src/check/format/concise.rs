//! One line for each violation, its fix indented below.

use crate::check::verdict::Verdict;

/// Returns a file's lines.
pub(crate) fn one(verdict: &Verdict) -> String {
    let told = |violation: &validate_message::Violation| violation.to_text(&verdict.file) + "\n";
    let lines: String = verdict.violations().iter().map(told).collect();
    lines + &super::cut::cut(verdict)
}
