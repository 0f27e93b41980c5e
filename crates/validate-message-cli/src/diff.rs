//! The changes that a service would make in a file, shown to a person first.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use message_schema::line::escaped;
use similar::TextDiff;

use crate::print;

/// The longest search for the smallest difference. The diff then shows the rest as removed and added: where all lines of a
/// large file change, the search takes minutes and finds nothing better.
const SEARCH_MAX: Duration = Duration::from_millis(10);

/// Prints the unified diff between two texts of one file, if they differ; reports and returns whether it was lost. A
/// program gets a diff it can apply. On a terminal, it escapes characters that are invisible or that move others.
pub(crate) fn is_lost(name: &str, before: &str, after: &str) -> bool {
    let diff = unified(name, before, after);
    if io::stdout().is_terminal() {
        print::is_lost(&for_people(&diff))
    } else {
        print::is_lost(&diff)
    }
}

/// Returns the diff; it is empty if the texts are equal.
fn unified(name: &str, before: &str, after: &str) -> String {
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

fn for_people(diff: &str) -> String {
    let lines = diff.split('\n').map(escaped);
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_sees_what_hides_or_moves_characters_and_a_program_gets_it_unchanged() {
        let diff = unified("/a.yaml", "x: \"a\u{202e}b\"\n", "x: a\u{200b}\n");
        assert_eq!(
            diff,
            "--- a/a.yaml\n+++ b/a.yaml\n@@ -1 +1 @@\n-x: \"a\u{202e}b\"\n+x: a\u{200b}\n"
        );
        assert_eq!(
            for_people(&diff),
            "--- a/a.yaml\n+++ b/a.yaml\n@@ -1 +1 @@\n-x: \"a\\u{202e}b\"\n+x: a\\u{200b}\n"
        );
    }
}
