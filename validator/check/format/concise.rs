//! One line for each violation, its fix indented below.

use crate::check::verdict::Verdict;

/// Gives the lines.
pub(crate) fn print(verdicts: &[Verdict]) -> String {
    let mut out = String::new();
    for verdict in verdicts {
        for violation in verdict.violations() {
            out.push_str(&violation.told(&verdict.file));
            out.push('\n');
        }
        if verdict.is_cut() {
            out.push_str(&format!("{}: there are more violations, these are the first\n", verdict.file));
        }
    }
    out
}
