//! The messages to check: correct ones of the four review types, and a hundred broken ones.

use std::path::{Path, PathBuf};

use super::super::figures::Result;

/// A broken message, and the position of its mistake.
pub(super) struct Broken {
    pub(super) file: PathBuf,
    pub(super) line: usize,
    pub(super) column: usize,
}

const BODIES: [(&str, &str); 3] = [
    (
        "review_request",
        "  pr: 86\n  branch: claude/change\n  diff_summary: |\n    What was changed,\n    and why.\n",
    ),
    (
        "review_addressed",
        "  commit_sha: abc1234\n  round: 1\n  changes_summary: all of it\n  touched_files: [a.rs, b.rs]\n",
    ),
    (
        "review_lgtm",
        "  quality_gate_result: pass\n  merge_ready: true\n  nits:\n    - nit_id: NIT-001\n      tier: P2\n      summary: s\n      owner: claude\n      next_action: later\n",
    ),
];

fn message(number: usize) -> String {
    let (kind, body) = BODIES[number % BODIES.len()];
    format!(
        "id: msg-{number:06}\nfrom: claude\nto: codex\ntype: {kind}\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"Change {number}\"\nbody: |\n{body}"
    )
}

/// Writes `count` correct messages.
pub(super) fn lay(place: &Path, count: usize) -> Result<Vec<PathBuf>> {
    let directory = place.join("messages");
    std::fs::create_dir_all(&directory)?;
    let write = |number| -> Result<PathBuf> {
        let file = directory.join(format!("{number:06}.yaml"));
        std::fs::write(&file, message(number))?;
        Ok(file)
    };
    (0..count).map(write).collect()
}

/// Writes a hundred messages with one mistake each: 84 of five kinds in the envelope, and 16 in the body.
pub(super) fn broken(place: &Path) -> Result<Vec<Broken>> {
    let directory = place.join("broken");
    std::fs::create_dir_all(&directory)?;
    let mut all = Vec::new();
    for number in 0..100 {
        let (from, to, line, column) = match (number < 16, number % 5) {
            (true, _) => ("pr: 86\n", "pr: eighty-six\n", 10, 7),
            (false, 0) => ("priority: P1", "priority: high", 5, 11),
            (false, 1) => ("10:00:00Z", "10:00:00+00:00", 6, 17),
            (false, 2) => ("related_pr: \"86\"", "related_pr: \"#86\"", 7, 13),
            (false, 3) => ("to: codex", "too: codex", 3, 1),
            (false, _) => ("from: claude", "from: -claude", 2, 7),
        };
        let text = message(if number < 16 {
            number * BODIES.len()
        } else {
            number
        });
        let text = text.replace(from, to);
        let file = directory.join(format!("{number:03}.yaml"));
        std::fs::write(&file, text)?;
        all.push(Broken { file, line, column });
    }
    Ok(all)
}
